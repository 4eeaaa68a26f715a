/**
 * Longest line of a watch. Objects have at most 1.5 MiB in etcd and 3 MiB in requests; JSON escapes take up to six
 * bytes for one.
 */
const MAX_LINE_BYTES = 16 * 1024 ** 2;

const NEWLINE = 0x0a;

/** Splits a stream of bytes into lines. The bytes of a line are copied once, when it is complete. */
export class LineSplitter {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(limit: number = MAX_LINE_BYTES) {
    this.#limit = limit;
  }

  /**
   * The lines that end in `chunk`, without newline and decoded as UTF-8; empty ones are left out.
   * @throws RangeError when a line exceeds the limit.
   */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#check(end - start);
      const line =
        this.#bytes === 0
          ? chunk.toString('utf8', start, end)
          : Buffer.concat([...this.#parts, chunk.subarray(start, end)]).toString('utf8');
      this.#parts = [];
      this.#bytes = 0;
      if (line !== '') {
        lines.push(line);
      }
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#check(chunk.length - start);
      this.#parts.push(chunk.subarray(start));
      this.#bytes += chunk.length - start;
    }
    return lines;
  }

  /** Bytes of the incomplete last line. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  #check(more: number): void {
    if (this.#bytes + more > this.#limit) {
      throw new RangeError(`expected lines of at most ${this.#limit} bytes, got a longer one`);
    }
  }
}
