"""The pairs of client and fault, and what is true of each.

`f` behind a fault: it befalls the first try alone. A pair is what a client does, the command, the fault, the result that is right, and what the verdict has to say:

    named     rules that hold; `a|b` where either is right
    never     rules that do not hold; a pair that passes has no defect anyhow
    silent    words that would be untrue, with `|` between them
    hits      how many calls the fault may reach
    untold    requests of this client and of another that behaves otherwise are the same: that it cannot be told is right as
              well, as long as no defect is counted
"""

from dataclasses import dataclass

# What an injection at each agent has below its `agent`.
FAULTS = {
    "429": "when.call = 0\nfault.status = { code = 429, retry_after_s = 1 }",
    "429 f": 'when.call = 0\nfault.status = { code = 429, retry_after_s = 1, attempts = "first" }',
    "429 ×30": "when.first = 30\nfault.status = { code = 429, retry_after_s = 1 }",
    "429 twice": "when.first = 2\nfault.status = { code = 429, retry_after_s = 1 }",
    "429 every other": 'when.every = 2\nfault.status = { code = 429, retry_after_s = 1, attempts = "first" }',
    "503": "when.call = 0\nfault.status = { code = 503 }",
    "503 f": 'when.call = 0\nfault.status = { code = 503, attempts = "first" }',
    "503 always": "when.always = true\nfault.status = { code = 503 }",
    "500": "when.call = 0\nfault.status = { code = 500 }",
    "401 f": 'when.call = 0\nfault.status = { code = 401, attempts = "first" }',
    "401": "when.call = 0\nfault.status = { code = 401 }",
    "400": 'when.call = 0\nfault.status = { code = 400, code_name = "context_length_exceeded" }',
    "hang": 'when.call = 0\nfault.hang = { at = "before_body", at_most_s = 20 }',
    "hang f": 'when.call = 0\nfault.hang = { at = "before_body", at_most_s = 20, attempts = "first" }',
    "latency": "when.call = 0\nfault.latency = { ms = 3000 }",
    "cut": "when.call = 0\nfault.cut = { at = { after_bytes = 210 } }",
    "cut f": 'when.call = 0\nfault.cut = { at = { after_bytes = 210 }, attempts = "first" }',
    "clean": "when.call = 0\nfault.cut = { at = { after_bytes = 210 }, clean = true }",
    "clean f": 'when.call = 0\nfault.cut = { at = { after_bytes = 210 }, clean = true, attempts = "first" }',
    "cut stream": "when.call = 0\nfault.cut = { at = { after_frames = 7 } }",
    "cut stream f": 'when.call = 0\nfault.cut = { at = { after_frames = 7 }, attempts = "first" }',
    "clean stream": "when.call = 0\nfault.cut = { at = { after_frames = 7 }, clean = true }",
    "clean stream f": 'when.call = 0\nfault.cut = { at = { after_frames = 7 }, clean = true, attempts = "first" }',
    "empty": 'when.call = 0\nfault.spoil_answer = { how = "empty" }',
    "no arguments": 'when.call = 0\nfault.spoil_tool_call = { how = "no_arguments" }',
}
PASSED, FAILED = "passed", "failed"


@dataclass(frozen=True)
class Pair:
    client: str
    command: str
    # One of `FAULTS`, or a ready-made plan.
    fault: str
    result: str
    named: str = ""
    never: str = ""
    silent: str = ""
    hits: int | None = None
    untold: bool = False
    # Seconds until the program is ended.
    limit: int = 60
    check: str | None = None

    @property
    def name(self):
        return f"{self.client} × {self.fault}"


# Questions that differ, or come one after the other with unchanged bytes.
PLAIN = [
    Pair("SDK as it comes", "sdk_ask.py plain 3", "429 every other", PASSED, "healed", "gave_up"),
    Pair("waits as told", "loop.py --questions 3", "429 every other", PASSED, "healed", "gave_up"),
    Pair("waits 0.2 s", "loop.py --pause 0.2", "429", FAILED, "ignored_retry_after"),
    Pair("gives up", "loop.py --tries 1", "429", PASSED, "gave_up"),
    Pair("gives up", "loop.py --tries 1", "503", PASSED, "gave_up"),
    Pair("asks on without pause for ever", "loop.py --tries 0 --pause 0", "503", FAILED, "no_backoff|retry_storm", limit=4),
    Pair("swallows a stream", "stream.py swallows", "clean stream", FAILED, "accepted_truncated"),
    Pair("falls over", "loop.py --end raise", "429", FAILED, "crashed", "gave_up"),
    Pair("falls over", "loop.py --end raise", "500", FAILED, "crashed", "gave_up"),
    Pair("falls over", "stream.py falls", "cut stream", FAILED, "crashed", "accepted_truncated"),
    Pair("falls over", "tools.py falls", "no arguments", FAILED, "crashed"),
    Pair("reports bad arguments back", "tools.py reports", "no arguments", PASSED, "took_altered", hits=1),
    Pair("pool of 3 that waits", "pool.py waits", "429", PASSED, "retried", "healed"),
    Pair("pool of 3 that puts back at once", "pool.py puts-back", "429 f", FAILED, "ignored_retry_after"),
    Pair("own time-out, then another model", "fallback.py", "hang", PASSED, "hung_up gave_up", "stuck"),
    Pair("own time-out, then another model (SDK)", "sdk_ask.py fallback", "hang", PASSED, "hung_up gave_up", "stuck"),
    Pair("asks another model", "fallback.py", "503", PASSED, "gave_up"),
    Pair("hedges", "hedge.py", "latency", PASSED),
    Pair("hedges", "hedge.py", "hang", PASSED),
    Pair("shortens the prompt", "shorten.py", "400", PASSED, never="retried_non_retryable"),
    Pair("works on while it waits", "meanwhile.py", "429 f", PASSED, "healed", "gave_up"),
    Pair("looks for the finish reason", "stream.py checks", "cut stream f", PASSED, "healed"),
    Pair("looks for the finish reason", "stream.py checks", "clean stream f", PASSED, "healed"),
    Pair("asks again for broken JSON", "half.py checks", "clean f", PASSED, "healed"),
    Pair("SDK as it comes", "sdk_ask.py plain 1", "cut f", PASSED, "healed"),
    Pair("SDK with a time limit", "sdk_ask.py timed", "hang f", PASSED, "hung_up healed"),
    Pair("five different at once (SDK)", "sdk_voters.py 5 at-once --different", "rate-limit", PASSED, "healed"),
    Pair("three in turn (SDK)", "sdk_voters.py 3 in-turn", "rate-limit", PASSED, "healed"),
]

# Words that a verdict must not say of what did not happen.
IDLE = "did nothing more|then ran out of time"
WORDS = [
    Pair("hangs until it is ended", "loop.py", "hang", FAILED, "stuck", "hung_up", "closed the connection itself", limit=5),
    Pair("asks on with a pause for ever", "loop.py --tries 0 --pause 0.8", "503", FAILED, silent=IDLE, limit=6),
    Pair("asks on with a growing history", "history.py", "503 always", FAILED, silent=IDLE, limit=6),
    Pair("killed by a refusal beside another call", "parallel.py", "503", FAILED, "crashed", "gave_up"),
]

# What requests do not show; docs/client-verdict.md says what a verdict makes of it.
LIMITS = [
    Pair("swallows a stream", "stream.py swallows", "cut stream", PASSED, "gave_up", untold=True),
    Pair("swallows JSON", "half.py swallows", "cut", PASSED, "gave_up", untold=True),
    Pair("says that the answer was cut", "stream.py says", "clean stream", FAILED, "accepted_truncated", untold=True),
    Pair("polite error code", "loop.py --tries 1 --end code", "503", FAILED, "crashed", untold=True),
    Pair("takes an empty answer", "empty.py takes", "empty", PASSED, "took_altered", untold=True),
    Pair("takes an empty answer (SDK)", "sdk_ask.py takes", "empty", PASSED, "took_altered", untold=True),
    Pair("a bug of its own after giving up", "loop.py --tries 1 --end bug", "503", FAILED, "crashed", untold=True),
]

# Equal questions of several workers: one's is no retry of another's.
EQUAL = [
    Pair("two workers, 0.25 s apart", "workers.py 2 0.25", "503 f", PASSED, "gave_up", "healed", untold=True),
    Pair("two workers, one right after the other", "workers.py 2 in-turn", "503 f", PASSED, "gave_up", "healed", untold=True),
    Pair("two workers, one right after the other", "workers.py 2 in-turn", "429 f", PASSED, "gave_up", "healed", untold=True),
    Pair("two in turn (SDK, no retries)", "sdk_voters.py 2 in-turn --retries 0", "503 f", PASSED, "gave_up", "healed", untold=True),
    Pair("two in turn (SDK, no retries)", "sdk_voters.py 2 in-turn --retries 0", "429 f", PASSED, "gave_up", "healed", untold=True),
    Pair("five votes in turn", "workers.py 5 in-turn", "503 f", PASSED, "gave_up", "healed", untold=True),
    Pair("five votes in turn", "workers.py 5 in-turn", "429 f", PASSED, "gave_up", "healed", untold=True),
    Pair("five votes at once", "workers.py 5 at-once", "503 f", PASSED, "gave_up", "healed", untold=True),
    Pair("two at once that wait", "workers.py 2 at-once --waits", "429 f", PASSED, "healed", untold=True),
    Pair("two at once (SDK)", "sdk_voters.py 2 at-once", "429 f", PASSED, "healed", "gave_up"),
    Pair("two at once (SDK)", "sdk_voters.py 2 at-once", "503 f", PASSED, "healed", "gave_up"),
    Pair("five at once (SDK, no retries)", "sdk_voters.py 5 at-once --retries 0", "503 f", PASSED, "gave_up", "healed", untold=True),
    Pair("five at once (SDK, no retries)", "sdk_voters.py 5 at-once --retries 0", "429 f", PASSED, "gave_up", "healed", untold=True),
    Pair("five at once (SDK)", "sdk_voters.py 5 at-once", "429 f", PASSED, "healed", "gave_up"),
    Pair("three at once (openai-agents)", "agents_gather.py", "rate-limit", PASSED, "healed", "gave_up"),
    # It does not say in its requests how often it has tried.
    Pair("three at once (AI SDK)", "pair_ai_sdk.mjs", "rate-limit", PASSED, "healed", "gave_up", untold=True),
    Pair("three at once (openai-node)", "pair_voters.mjs", "rate-limit", PASSED, "healed", "gave_up"),
    Pair("renews its key", "key.py renews", "401 f", PASSED, "healed", hits=1),
]

# Tries whose bytes change, and halves that are used.
CHANGED = [
    Pair("time stamp, no pause", "loop.py --change time --tries 31 --pause 0", "429 ×30", FAILED, "ignored_retry_after"),
    Pair("request id, no pause", "loop.py --change id --pause 0", "429", FAILED, "ignored_retry_after"),
    Pair("other temperature, no pause", "loop.py --change temperature --pause 0", "429 twice", FAILED, "ignored_retry_after"),
    Pair("nonce, for ever", "loop.py --change nonce --tries 0 --pause 0", "503 always", FAILED, "no_backoff|retry_storm", limit=4),
    Pair("swallows JSON", "half.py swallows", "clean", FAILED, "accepted_truncated", untold=True),
    Pair("quotes half a JSON", "half.py quotes", "clean", FAILED, "accepted_truncated", "gave_up"),
]

# An agent that asks the same again has had its first call.
AIM = [
    Pair("asks again after an empty answer", "empty.py again", "empty", PASSED, never="crashed", hits=1),
    Pair("polls", "poll.py", "503 f", PASSED, hits=1),
]

# Beside the 65: the other side of two of them.
MORE = [
    Pair("same key again", "key.py same", "401", FAILED, "retried_non_retryable", "healed"),
    Pair("polite error code, with a check", "loop.py --tries 1 --end code", "503", PASSED, "gave_up", "crashed", check="true"),
]

# A plan is fair where a good client survives it.
FAIR = [
    Pair("a good client", "sdk_reference.py", f"faults/{plan}", PASSED, limit=180)
    for plan in ("bad-tools", "broken-stream", "degraded-stream", "flaky-provider", "overload", "rate-limit", "slow-service")
]

PAIRS = [*PLAIN, *WORDS, *LIMITS, *EQUAL, *CHANGED, *AIM, *MORE, *FAIR]
