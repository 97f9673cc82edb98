"""The rules of the shipped packs, by name: a rule may name one that is not loaded, and a user may mean one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from healthwatch import resources, yamlfile
from healthwatch.diagnostics import did_you_mean, suggest


@cache
def shipped() -> Mapping[str, str]:
    """The pack of every shipped rule."""
    documents = {pack: yamlfile.load(resources.path(f"rules/{pack}.yaml"), pack) for pack in resources.packs()}
    return {
        rule["alert"]: pack
        for pack, document in documents.items()
        for group in document.data["groups"]
        for rule in group["rules"]
    }


def meant(name: str, loaded: Iterable[str], what: str = "loaded rules") -> str:
    """Help where no loaded rule is called so: what may have been meant, and where it is."""
    loaded = list(loaded)
    packs = shipped()
    if name in packs:
        return f"it is in builtin:{packs[name]}, which is not loaded"
    near = did_you_mean(name, [*packs, *loaded])
    elsewhere = next((other for other in packs.keys() - {*loaded} if near == f'did you mean "{other}"?'), None)
    if elsewhere is not None:
        return f'did you mean "{elsewhere}" of builtin:{packs[elsewhere]}?'
    return near or suggest(name, loaded, what)
