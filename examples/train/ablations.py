"""What each part of the contrastive recipe is worth: the whole, and the whole without one part, in one table.

    python3 ablations.py DATASET --out FOLDER [the options of contrastive.py]

The Aegis paper (arXiv 2509.14295) leaves out four parts and states one figure, the mean of its twelve F1 figures. Three of the four
are parts of `contrastive.py`; what its "intent" is we could not read. Its figures stand beside ours to compare the order of
rows, not the numbers: other rows, other sizes, another encoder.
"""

import contrastive
import recipe

# What is left out, and the mean F1 that the paper states for it; none where it does not leave the part out.
ROWS = {"nothing": 12.61, "hierarchy": 9.52, "mixture": 10.01, "bilinear": 12.42, "contrast": None, "attention": None}
SHOWN = ("agent", "step", "pair micro F1", "agent micro F1", "mode micro F1")


def trained(options, part, files, rows, encode):
    """Figures of the recipe without a part, in a folder of its own: what was done before is not done again."""
    options.out, options.without = options.base / part, [] if part == "nothing" else [part]
    options.out.mkdir(parents=True, exist_ok=True)
    model = contrastive.learnt(options, rows, encode)
    return recipe.measure("after", files, options, lambda file: contrastive.asked(model, file, options.rows, encode))


def table(results):
    """A row an ablation and part that is measured on."""
    lines = [f"| left out | measured on | runs | {' | '.join(SHOWN)} | paper's mean F1 |", "|---|---|--:|" + "--:|" * (len(SHOWN) + 1)]
    for part, figures in results.items():
        for name, measured in figures.items():
            cells = " | ".join(recipe.shown(measured["figures"].get(figure)) for figure in SHOWN)
            paper = "–" if ROWS[part] is None else f"{ROWS[part]:.2f}"
            lines.append(f"| {part} | {recipe.PARTS[name]} | {measured['runs']} | {cells} | {paper} |")
    return "\n".join(lines)


def main():
    options = contrastive.arguments(__doc__.splitlines()[0])
    if options.without:
        raise SystemExit("`--without` is for contrastive.py: here each part is left out in turn")
    options.base = options.out
    files, rows, encode = contrastive.begun(options)
    results = {part: trained(options, part, files, rows, encode) for part in ROWS}
    print(table(results))
    recipe.keep(options.base / "result.json", results)


if __name__ == "__main__":
    main()
