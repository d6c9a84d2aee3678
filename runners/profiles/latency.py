"""Two sections of a workload: the latencies that users accept, and the open loop that shows at which rate they hold."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from runners.profiles.strict import Positive, Strict

FEWEST_ARRIVALS = 5  # in one open-loop window, on average: fewer show no share of requests


def _auto_or_numbers(given: Any) -> Any:
    # pydantic would name both forms and say what is wrong with each.
    numbers = isinstance(given, list) and given and all(type(x) in (int, float) and x > 0 for x in given)
    if given != "auto" and not numbers:
        raise ValueError("must be `auto`, or a list of requests per second")
    return given


Rates = Annotated[Literal["auto"] | list[Positive], BeforeValidator(_auto_or_numbers)]


class LatencyLimits(Strict):
    """The longest that a user should wait: milliseconds to the first token, for each token after it, and in all.

    attainment: the share of requests that must keep all of them. A load counts for goodput only where it is reached.
    """

    ttft_ms: float = Field(gt=0)
    tpot_ms: float = Field(gt=0)
    e2e_ms: float | None = Field(default=None, gt=0)  # None: no limit of its own
    attainment: float = Field(default=0.9, gt=0, le=1)


class OpenLoop(Strict):
    """Requests that arrive at a rate, whatever the server does: the load of many users who do not know of each other.

    rates: requests per second, or `auto`: `shares` of the highest request rate that the closed loop showed
    (measure/arrivals.py).
    """

    rates: Rates = "auto"
    shares: list[Positive] = Field(default=[0.3, 0.5, 0.7, 0.85, 1.0], min_length=1)  # with `rates: auto`
    seconds: float = Field(default=20, gt=0)  # of arrivals that are judged
    presets: list[str] = Field(default=["full"], min_length=1)  # those that measure it
    once: bool = False  # only in the first campaign of a preset, whose curves stand for the later ones
    leave_out: list[str] = Field(default_factory=list)  # configurations that nobody would serve, controls for example

    @model_validator(mode="after")
    def enough_requests(self) -> "OpenLoop":
        for name, given in (("rates", self.rates), ("shares", self.shares)):
            if given != "auto" and sorted(set(given)) != given:
                raise ValueError(f"`{name}` must rise from one to the next")
        if self.rates != "auto" and self.rates[0] * self.seconds < FEWEST_ARRIVALS:
            raise ValueError(
                f"{self.rates[0]:g} requests per second bring fewer than {FEWEST_ARRIVALS} requests in "
                f"{self.seconds:g} s; set more `seconds`, or a higher rate"
            )
        return self
