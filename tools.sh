#!/bin/sh
# Brings promtool and Alertmanager, for the tests that ask the real ones, into .tools/: nothing is installed or started, and no
# root is needed. Both come from Debian's or Ubuntu's archive; where there is no apt-get, those tests skip.
set -eu
cd "$(dirname "$0")"
tools=$PWD/.tools
command -v apt-get >/dev/null || { echo "tools: no apt-get here, so neither promtool nor Alertmanager" >&2; exit 2; }
rm -rf "$tools/apt" "$tools/packages"
mkdir -p "$tools/apt/lists/partial" "$tools/apt/archives/partial" "$tools/packages"

# The machine's lists of packages may be old or missing, and they are not ours to refresh: then with lists of our own.
download() {
    (cd "$tools/packages" && apt-get download -q prometheus-alertmanager &&
        { apt-get download -q promtool || apt-get download -q prometheus; }) # a package of its own since Debian 13
}
download || {
    printf 'Dir::State::lists "%s";\nDir::Cache "%s";\nAPT::Sandbox::User "";\n' "$tools/apt/lists" "$tools/apt" \
        >"$tools/apt/apt.conf"
    export APT_CONFIG="$tools/apt/apt.conf"
    apt-get update -q
    download
}
rm -rf "$tools/unpacked"
for package in "$tools"/packages/*.deb; do
    dpkg -x "$package" "$tools/unpacked"
done
rm -rf "$tools/apt" "$tools/packages"

ln -sf unpacked/usr/bin/promtool unpacked/usr/bin/amtool "$tools/"
# Debian's Alertmanager looks for its templates where a package would have put them; ours finds them in the folder that it
# is started in. Both paths have the same length.
LC_ALL=C sed 's|/usr/share/prometheus/alertmanager|./////////////////////////////////|g' \
    "$tools/unpacked/usr/bin/prometheus-alertmanager" >"$tools/alertmanager.new"
chmod 755 "$tools/alertmanager.new"
"$tools/promtool" --version | head -n 1
"$tools/alertmanager.new" --version | head -n 1
mv "$tools/alertmanager.new" "$tools/prometheus-alertmanager"
