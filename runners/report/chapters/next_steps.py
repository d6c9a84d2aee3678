"""The menu of next steps as a table for reading."""

import pandas as pd


def shown(frame: pd.DataFrame) -> pd.DataFrame:
    """`ranked` for reading."""

    def words(values, workings) -> list[str]:
        return [
            w if pd.isna(v) else f"{v:.2f} ({w})" if w != "1" else "1" for v, w in zip(values, workings, strict=True)
        ]

    return pd.DataFrame(
        {
            "option": frame.option,
            "at most, here": words(frame.lab, frame.lab_words),
            "carried out here": words(frame.got, frame.got_words),
            "at most, the case's box (from reported figures)": words(frame.case, frame.case_words),
            "buys": frame.buys,
            "costs": frame.costs,
            "what settles it": frame.settles,
            "try it": [f"`{c}`" for c in frame.command],
        }
    )
