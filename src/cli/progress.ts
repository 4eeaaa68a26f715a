import { stripVTControlCharacters } from 'node:util';
import { ownSequence, styled } from '../values/index.ts';

/** Delay before progress is shown, so that quick work does not flash a line. Milliseconds. */
const DELAY_MS = 200;
const FRAME_MS = 100;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const CLEAR_LINE = `${ownSequence('\u001B[G')}${ownSequence('\u001B[2K')}`;

/** The part of a terminal stream that {@link Progress} needs. */
export type Terminal = NodeJS.WritableStream & Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>;

/** A spinner with a label on standard error; without a terminal it prints nothing. */
export class Progress {
  readonly #stream: Terminal;
  readonly #isShown: boolean;
  #label = '';
  #frame = 0;
  #isDrawn = false;

  /** @param terminal the value of $TERM; a `dumb` terminal cannot clear a line */
  constructor(stream: Terminal = process.stderr, terminal: string | undefined = process.env['TERM']) {
    this.#stream = stream;
    this.#isShown = stream.isTTY && terminal !== 'dumb';
  }

  /** Writes a line to standard error, above the spinner. */
  line(text: string): void {
    this.#clear();
    this.#stream.write(`${text}\n`);
  }

  /** Writes a note for the user. */
  note(text: string): void {
    this.line(`${styled('yellow', 'note:', { stream: this.#stream })} ${text}`);
  }

  /** Shows `label` while the work runs; the work may update it. */
  async during<T>(label: string, work: (update: (label: string) => void) => Promise<T>): Promise<T> {
    const update = (text: string): void => {
      this.#label = text;
    };
    update(label);
    if (!this.#isShown) {
      return await work(update);
    }
    let frames: NodeJS.Timeout | undefined;
    const delay = setTimeout(() => {
      this.#draw();
      frames = setInterval(() => this.#draw(), FRAME_MS);
    }, DELAY_MS);
    try {
      return await work(update);
    } finally {
      clearTimeout(delay);
      clearInterval(frames);
      this.#clear();
    }
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const width = Math.max(10, (this.#stream.columns || 80) - 3);
    const label = stripVTControlCharacters(this.#label).slice(0, width);
    const frame = styled('cyan', FRAMES[this.#frame] ?? '', { stream: this.#stream });
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
