// One line on a terminal that says what is being waited for.
import { stripVTControlCharacters, styleText } from 'node:util';

/** Nothing is said of what is done within this time: a line that flashes is worse than none. Milliseconds. */
const PATIENCE_MS = 200;
const FRAME_MS = 100;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const CLEAR_LINE = '\r\u001B[2K';

/** The stream of a terminal, as far as progress needs it. */
export type Terminal = NodeJS.WritableStream & Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>;

/** Says on standard error what is being done, when that is a terminal; and keeps out of the way of other lines there. */
export class Progress {
  readonly #stream: Terminal;
  readonly #isShown: boolean;
  #label = '';
  #frame = 0;
  #isDrawn = false;

  /** `terminal` is the kind of the terminal; a dumb one cannot clear a line. */
  constructor(stream: Terminal = process.stderr, terminal: string | undefined = process.env['TERM']) {
    this.#stream = stream;
    this.#isShown = stream.isTTY && terminal !== 'dumb';
  }

  /** Writes a line to standard error, above the progress if there is one. */
  line(text: string): void {
    this.#clear();
    this.#stream.write(`${text}\n`);
  }

  /** Shows `label` as long as the work takes; the work may refine it. */
  async during<T>(label: string, work: (update: (label: string) => void) => Promise<T>): Promise<T> {
    const update = (text: string): void => {
      this.#label = text;
    };
    update(label);
    if (!this.#isShown) {
      return await work(update);
    }
    let frames: NodeJS.Timeout | undefined;
    const patience = setTimeout(() => {
      this.#draw();
      frames = setInterval(() => this.#draw(), FRAME_MS);
    }, PATIENCE_MS);
    try {
      return await work(update);
    } finally {
      clearTimeout(patience);
      clearInterval(frames);
      this.#clear();
    }
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const width = Math.max(10, (this.#stream.columns || 80) - 3);
    const label = stripVTControlCharacters(this.#label).slice(0, width);
    const frame = styleText('cyan', FRAMES[this.#frame] ?? '', { stream: this.#stream });
    this.#stream.write(`${CLEAR_LINE}${frame} ${label}`);
    this.#isDrawn = true;
  }

  #clear(): void {
    if (this.#isDrawn) {
      this.#stream.write(CLEAR_LINE);
      this.#isDrawn = false;
    }
  }
}
