"""The menu of next steps as a table."""

import pandas as pd


def menu_table(menu: pd.DataFrame) -> pd.DataFrame:
    """What each option can bring at most, what it brought here, what it costs (menu: `next_steps.ranked`)."""

    def with_working(values: pd.Series, workings: pd.Series) -> list[str]:
        return [
            w if pd.isna(v) else f"{v:.2f} ({w})" if w != "1" else "1" for v, w in zip(values, workings, strict=True)
        ]

    return pd.DataFrame(
        {
            "option": menu.option,
            "at most, here": with_working(menu.lab, menu.lab_words),
            "carried out here": with_working(menu.got, menu.got_words),
            "at most, the case's box (from reported figures)": with_working(menu.case, menu.case_words),
            "buys": menu.buys,
            "costs": menu.costs,
            "what settles it": menu.settles,
            "try it": [f"`{c}`" for c in menu.command],
        }
    )
