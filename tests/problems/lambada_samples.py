"""Small files of LAMBADA's layout: the archive as published, or what it holds."""

import io
import tarfile

NAMES = ("anna", "boris", "clara", "dmitri")
THINGS = ("lamp", "letter", "key", "coat")


def passages(count=12):
    """Returns lines of the form of the test files; the last word stands in the passage, but for every fourth."""
    lines = []
    for number in range(count):
        name, thing = NAMES[number % 4], THINGS[number // 4 % 4]
        found = f"{name} had lost the {thing} . `` where is it ? '' she asked . she did n't see the"
        lines.append(f"{found} {'cat' if number % 4 == 3 else thing}")
    return lines


def novel(sentences=60):
    """Returns a novel of the archive's form: a tokenised sentence a line, with blanks around it."""
    lines = [
        f" {NAMES[n % 4]} said that the {THINGS[n % 3]} was not in the house , and looked for the {THINGS[n % 3]} . "
        for n in range(sentences)
    ]
    return "".join(f"{line}\n" for line in lines)


def vocabulary():
    """Returns the list of words with frequencies; "cat" is not among them."""
    words = f"the {' '.join(THINGS)} {' '.join(NAMES)} had lost where is it she asked did n't see said that was not in"
    words = ["<s>", "</s>", ".", ",", "``", "''", "?", *words.split(), "house", "and", "looked", "for"]
    return "".join(f"{word}\t{1000 - place}\n" for place, word in enumerate(words))


def files(novels=("novel one", "novel two"), evaluated=("development", "test", "control_test_data")):
    """Returns {name in the archive: bytes}; `novels` are the names of novels, () for none."""
    texts = {"lambada-vocab-2.txt": vocabulary().encode()}
    for place, name in enumerate(evaluated):
        lines = passages(12 - 4 * (place > 0))
        texts[f"lambada_{name}_plain_text.txt"] = "".join(f"{line}\n" for line in lines).encode()
    if novels:
        texts["train-novels.tar"] = tar({f"train-novels/Mystery/{name}.txt": novel().encode() for name in novels})
    return texts


def tar(members, mode="w"):
    """Returns the bytes of a tar archive of {name: bytes}."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def write_archive(folder, **options):
    """Writes lambada-dataset.tar.gz into `folder`, which it makes, and returns the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "lambada-dataset.tar.gz").write_bytes(tar(files(**options), "w:gz"))
    return folder


def write_unpacked(folder, **options):
    """Writes what the archive holds into `folder`, which it makes, novels unpacked, and returns the folder."""
    folder.mkdir(exist_ok=True)
    for name, data in files(**options).items():
        if name.endswith(".tar"):
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                archive.extractall(folder, filter="data")
        else:
            (folder / name).write_bytes(data)
    return folder


PLAIN = (
    """CHAPTER I. The _Lost_ Lamp

"Where is it?" Anna asked. She didn't see the
lamp, and Boris said that the lamp was lost.

"""
    + "Clara looked for the key in the house, and Clara had the key. 'It is not the key,' said Boris.\n\n" * 20
)
