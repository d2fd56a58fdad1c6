"""A clip range that narrows while a tracer is trained, as a policy loss of verl.

AgenTracer (arXiv 2509.03312) trains with a "dynamic" clip. Neither its formula nor its bounds could be read, and its code is not
published, so this schedule is ours and no copy of it: a straight line from a wide range to a narrow one,

    clip(t) = last + (first - last) * max(0, 1 - t / steps)

for the step t of training, from 0, on both sides of 1. From `steps` on it stays at `last`. verl takes its ratios
(`clip_ratio_low`, `clip_ratio_high`) once, from its file; so this loss sets them anew at each call and is verl's own otherwise:

    PYTHONPATH=. VERL_USE_EXTERNAL_MODULES=clip_schedule AEGIS_CLIP=0.3,0.2,300,32 \\
      python3 -m verl.trainer.main_ppo … actor_rollout_ref.actor.policy_loss.loss_mode=narrowing_clip

AEGIS_CLIP is first, last, steps, and how often a worker asks for the loss in one step: with `verl_grpo.yaml` 32 prompts times 8
rollouts over 8 GPUs, a row at a time, are 32. A fifth number is the step that a run goes on from, 0 unless it is said.
"""

import copy
import os


def clip_at(step, first, last, steps):
    """The clip range at a step, from 0."""
    return last + (first - last) * max(0.0, 1.0 - step / steps)


def settings(text):
    """What AEGIS_CLIP says: the arguments of the schedule, calls a step, and the first step."""
    parts = text.split(",")
    if len(parts) not in (4, 5):
        raise ValueError(f"AEGIS_CLIP is `{text}`: expected FIRST,LAST,STEPS,CALLS or FIRST,LAST,STEPS,CALLS,BEGIN")
    first, last = float(parts[0]), float(parts[1])
    steps, calls, begin = (*map(int, parts[2:]), 0)[:3]
    if not (0 < last <= first < 1 and steps > 0 and calls > 0 and begin >= 0):
        raise ValueError(f"AEGIS_CLIP is `{text}`: expected 0 < LAST ≤ FIRST < 1, and STEPS and CALLS over 0")
    return first, last, steps, calls, begin


def narrowing(loss, first, last, steps, calls, begin=0):
    """A loss of verl that is asked with the clip range of the step that its call belongs to."""
    asked = 0

    def narrowed(*given, config, **more):
        nonlocal asked
        clip = clip_at(begin + asked // calls, first, last, steps)
        asked += 1
        # verl's settings are frozen; the copy is this call's alone.
        own = copy.copy(config)
        for name in ("clip_ratio", "clip_ratio_low", "clip_ratio_high"):
            object.__setattr__(own, name, clip)
        result, metrics = loss(*given, config=own, **more)
        return result, metrics | {"actor/clip_ratio": clip}

    return narrowed


if "AEGIS_CLIP" in os.environ:
    from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla, register_policy_loss

    register_policy_loss("narrowing_clip")(narrowing(compute_policy_loss_vanilla, *settings(os.environ["AEGIS_CLIP"])))
