"""The Debian packages of a build, made and changed for tests."""

import re
import subprocess


def run(*command, **options):
    """Returns its output, which a failure shows."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    assert done.returncode == 0, f"{command}:\n{done.stdout}"
    return done.stdout


def make_packages(build, directory, compression="xz"):
    """{name: path}, of a build directory with everything made."""
    run("cpack", "--config", build / "CPackConfig.cmake", "-D", f"CPACK_DEBIAN_COMPRESSION_TYPE={compression}", "-B", directory)
    return {path.name.split("_")[0]: path for path in directory.glob("*.deb")}


def newer(deb, scratch, settings):
    """The next version of that package, with other settings in this file of it."""
    tree = scratch / "newer"
    run("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", "Version: 99.0", control.read_text()))
    with open(tree / settings, "a") as file:
        file.write("# And something new.\n")
    made = scratch / "newer.deb"
    run("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, made)
    return made
