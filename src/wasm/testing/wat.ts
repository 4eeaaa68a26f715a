import binaryen from 'binaryen';

/** Assembles WebAssembly text with all features enabled. Throws on invalid text. */
export function wat(text: string): Uint8Array {
  const module = binaryen.parseText(text);
  try {
    module.setFeatures(binaryen.Features.All);
    return module.emitBinary();
  } finally {
    module.dispose();
  }
}
