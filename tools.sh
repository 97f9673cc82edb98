#!/bin/sh
# Brings promtool and Alertmanager (for differential tests) into .tools/ without installing or starting anything.
# Needs Debian's or Ubuntu's apt-get and dpkg; without them the tests use the golden results that were made with it.
set -eu
cd "$(dirname "$0")"
tools=$PWD/.tools
mkdir -p "$tools/packages"
for tool in apt-get dpkg; do
    command -v "$tool" >/dev/null || { echo "tools: there is no $tool here" >&2; exit 2; }
done

# The lists of packages may be old or missing; refreshing them needs root, so only where the download fails.
download() {
    (cd "$tools/packages" && apt-get download -q "$1")
}
for package in prometheus prometheus-alertmanager; do
    ls "$tools/packages/${package}_"*.deb >/dev/null 2>&1 ||
        download "$package" || { apt-get update -q && download "$package"; }
    dpkg -x "$(ls "$tools/packages/${package}_"*.deb | tail -n 1)" "$tools/unpacked"
done
ln -sf unpacked/usr/bin/promtool unpacked/usr/bin/amtool "$tools/"
# Debian's Alertmanager looks for its templates where a package would have put them; ours finds them in the folder that it
# is started in. Both paths have the same length.
rm -f "$tools/prometheus-alertmanager"
LC_ALL=C sed 's|/usr/share/prometheus/alertmanager|./////////////////////////////////|g' \
    "$tools/unpacked/usr/bin/prometheus-alertmanager" > "$tools/prometheus-alertmanager"
chmod 755 "$tools/prometheus-alertmanager"
"$tools/promtool" --version | head -n 1
"$tools/prometheus-alertmanager" --version | head -n 1
