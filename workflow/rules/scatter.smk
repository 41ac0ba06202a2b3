# The parts of a job with --set-scatter shards=N, and their paths: the functions of shards.smk.


scattergather:
    shards=1,


PARTS = scatter.shards("{scatteritem}")
MOST_ORDERS = max([entry["window"] for entry in counting.values()], default=1) + 1


wildcard_constraints:
    scatteritem="|".join(PARTS),
    order="|".join(map(str, range(2, MOST_ORDERS + 1))),


def order_before(pattern):
    """Fill in a pattern with the previous order; nothing for order 2, which is the first."""

    def paths(wildcards):
        if wildcards.order == "2":
            return []
        return expand(pattern, **{**dict(wildcards.items()), "order": int(wildcards.order) - 1})

    return paths


def all_orders(pattern, beyond=0):
    """Fill in a pattern with all orders from 2 to the window + `beyond`, and with all parts."""

    def paths(wildcards):
        window = counting[wildcards.importance]["window"]
        numbers = range(2, window + beyond + 1)
        return expand(pattern, order=numbers, scatteritem=PARTS, **dict(wildcards.items()))

    return paths


def in_part(form):
    """Add the part of a job to its settings."""
    return lambda wildcards: Options(form(wildcards), part=wildcards.scatteritem)


def all_parts(name=""):
    """Return a function that writes `*-of-N` for the paths of all parts in an input.

    As a list, the paths of many parts exceed the 128 KiB that Linux allows for a command. The
    scripts list the parts again (cdmae/cli.py). name: an input, which lists all parts of one path,
    then all parts of the next; "": the only input.
    """

    def patterns(wildcards, input):
        firsts = (input[name] if name else input)[:: len(PARTS)]
        part = re.compile(rf"(?<=/){PARTS[0]}(?![^/.])")
        return [part.sub(f"*-of-{len(PARTS)}", path) for path in firsts]

    return patterns
