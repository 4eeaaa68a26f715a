// The dynamic section of ELF files (https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html), of 64 bits and little
// endian: which libraries a program needs, also of an architecture that this machine cannot run.

/** What the dynamic linker loads for a program or library. */
export interface DynamicLinking {
  /** The path of the dynamic linker; undefined for a library. */
  readonly interpreter: string | undefined;
  /** File names of libraries. */
  readonly needed: readonly string[];
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

const ELF_64_LITTLE_ENDIAN = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
/** A tag and a value. Bytes. */
const DYNAMIC_ENTRY_BYTES = 16;

/** @throws Error for other files */
export function dynamicLinking(file: Buffer, name: string): DynamicLinking {
  if (!file.subarray(0, ELF_64_LITTLE_ENDIAN.length).equals(ELF_64_LITTLE_ENDIAN)) {
    throw new Error(`${name} is no ELF file of 64 bits, little endian`);
  }
  const segments = segmentsOf(file);
  const interpreter = segments.find(({ type }) => type === PT_INTERP);
  const dynamic = dynamicEntries(file, segments);
  const strings = dynamic.find(({ tag }) => tag === DT_STRTAB);
  const stringsAt = strings === undefined ? 0 : fileOffset(segments, strings.value);
  return {
    interpreter: interpreter === undefined ? undefined : textAt(file, interpreter.offset),
    needed: dynamic.filter(({ tag }) => tag === DT_NEEDED).map(({ value }) => textAt(file, stringsAt + value)),
  };
}

function segmentsOf(file: Buffer): readonly Segment[] {
  const [start, bytes, count] = [wordAt(file, 0x20), file.readUInt16LE(0x36), file.readUInt16LE(0x38)];
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * bytes;
    return {
      type: file.readUInt32LE(at),
      offset: wordAt(file, at + 8),
      address: wordAt(file, at + 16),
      size: wordAt(file, at + 32),
    };
  });
}

function dynamicEntries(file: Buffer, segments: readonly Segment[]): readonly { tag: number; value: number }[] {
  const { offset, size } = segments.find(({ type }) => type === PT_DYNAMIC) ?? { offset: 0, size: 0 };
  return Array.from({ length: size / DYNAMIC_ENTRY_BYTES }, (_, index) => {
    const at = offset + index * DYNAMIC_ENTRY_BYTES;
    return { tag: wordAt(file, at), value: wordAt(file, at + 8) };
  });
}

/** Where the bytes of a virtual address are. */
function fileOffset(segments: readonly Segment[], address: number): number {
  const segment = segments.find(
    (one) => one.type === PT_LOAD && one.address <= address && address < one.address + one.size,
  );
  return segment === undefined ? 0 : segment.offset + address - segment.address;
}

function textAt(file: Buffer, at: number): string {
  return file.toString('latin1', at, file.indexOf(0, at));
}

function wordAt(file: Buffer, at: number): number {
  return Number(file.readBigUInt64LE(at));
}
