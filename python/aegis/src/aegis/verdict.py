"""Whether a program survived its faults, told from a recording."""

from __future__ import annotations

from typing import Any, Iterable, Optional

# Results from good to bad, and what a finding of a kind makes of a run; another kind makes it failed.
RESULTS = ("passed", "skipped", "inconclusive", "failed", "void")
OF_KIND = {
    "does_not_apply": "skipped",
    "never_delivered": "inconclusive",
    "check_undecided": "inconclusive",
    "check_broken": "void",
    "no_call": "void",
    "unanswered": "void",
}


class Verdict:
    """Whether the test's program survived, told from the recording (`aegis show RUN --verdict --format json`)."""

    def __init__(self, data: dict[str, Any], allow: Iterable[str] = ()) -> None:
        self.data, self.allow = data, tuple(allow)

    @property
    def result(self) -> str:
        """`passed`, `failed`, `skipped` (the program has nothing that the plan is for), `inconclusive` (the plan never fired) or
        `void` (no call was answered)."""
        if not self.allowed:
            return str(self.data["survival"]["result"])
        return max((OF_KIND.get(one["kind"], "failed") for one in self.findings), key=RESULTS.index, default="passed")

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.result == "passed"

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Why it is not passed: dicts with `kind`, `says` and, of a call, `at`."""
        return [one for one in self.data["survival"]["findings"] if not self._is_allowed(one)]

    @property
    def allowed(self) -> list[dict[str, Any]]:
        """The findings of rules that were allowed: they make nothing red."""
        return [one for one in self.data["survival"]["findings"] if self._is_allowed(one)]

    @property
    def injections(self) -> list[dict[str, Any]]:
        """What became of each injection of the plan: dicts with `operator`, `agents`, `delivered`."""
        return list(self.data["survival"]["injections"])

    @property
    def calls(self) -> list[dict[str, Any]]:
        """How each call met its trouble: dicts with `agent`, `step`, `tries`, `remarks`."""
        return list(self.data["client"]["calls"])

    def rules(self, agent: Optional[str] = None) -> set[str]:
        """The names of the rules that hold, of all calls or of one agent's; allowed ones too."""
        calls = (call for call in self.calls if agent in (None, call["agent"]))
        return {remark["rule"] for call in calls for remark in call["remarks"]}

    def _is_allowed(self, finding: dict[str, Any]) -> bool:
        return finding["kind"] == "defect" and finding["says"].partition(":")[0] in self.allow

    def __repr__(self) -> str:
        return f"<Verdict {self.result}>"
