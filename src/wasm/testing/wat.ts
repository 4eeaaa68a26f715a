import binaryen from 'binaryen';

/** Assembles WebAssembly text, every feature allowed. Throws on invalid text. */
export function wat(text: string): Uint8Array {
  const module = binaryen.parseText(text);
  try {
    module.setFeatures(binaryen.Features.All);
    return module.emitBinary();
  } finally {
    module.dispose();
  }
}
