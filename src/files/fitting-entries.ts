/** More than a file contains besides its entries. Bytes. */
const FRAME_BYTES = 100;

/** The entries that fit into a file of JSON together, in their order; those that do not fit are left out. */
export function fittingEntries<T>(entries: readonly T[], maxBytes: number): readonly T[] {
  let room = maxBytes - FRAME_BYTES;
  return entries.filter((entry) => {
    const bytes = Buffer.byteLength(JSON.stringify(entry)) + 1;
    const isFitting = bytes <= room;
    room -= isFitting ? bytes : 0;
    return isFitting;
  });
}
