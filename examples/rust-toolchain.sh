#!/bin/sh
# Installs a Rust compiler for pod-privileged in .cache/tools, without root and beside an installed one. For Debian 12 on amd64, whose
# packages contain the standard library for WebAssembly as source only. Needs cargo. Run it in the root of the repository.
set -eu

tools=$(pwd)/.cache/tools
mkdir -p "$tools/bin" "$tools/debs"
(
  cd "$tools/debs"
  apt-get download rustc-web=1.96.0+dfsg1-1~deb12u2 libstd-rust-web-1.96=1.96.0+dfsg1-1~deb12u2 \
    libstd-rust-web-dev=1.96.0+dfsg1-1~deb12u2 rust-web-src=1.96.0+dfsg1-1~deb12u2 \
    libllvm22=1:22.1.8-1~deb12u1 lld-22=1:22.1.8-1~deb12u1
  for package in *.deb; do
    dpkg -x "$package" "$tools/rust-1.96"
  done
)

# name, program: starts the program with the libraries that came with it.
wrap() {
  cat > "$tools/bin/$1" <<WRAPPER
#!/bin/sh
root=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/rust-1.96/usr
LD_LIBRARY_PATH=\$root/lib/x86_64-linux-gnu:\$root/lib exec "\$root/$2" "\$@"
WRAPPER
  chmod +x "$tools/bin/$1"
}
wrap rustc bin/rustc
wrap rust-lld lib/llvm-22/bin/wasm-ld
"$tools/bin/rustc" --version
