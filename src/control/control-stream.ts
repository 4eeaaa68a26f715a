// GET /stream: what a replica says of its revisions, one line of JSON after the other, to one controller.
import type { ServerResponse } from 'node:http';
import { ALIVE_INTERVAL_MS, MAX_MESSAGE_BYTES, MAX_REPORT_TEXT } from './replica-protocol.ts';
import type { ReplicaMessage, RevisionReport } from './replica-protocol.ts';
import type { ReportSource } from './report-source.ts';

/**
 * A controller that does not take what was written for this long is cut off: it believes the replica lost by then, and finds
 * a fresh stream better than an old one. Milliseconds.
 */
export const STALLED_MS = 5_000;
/** Room for what surrounds the reports in a line. Bytes. */
const ENVELOPE_BYTES = 256;

/**
 * One stream. It never holds more than one line that was not taken: what changes meanwhile is kept by name, so that a
 * slow controller is told how things are, not how they came to be.
 */
export class ControlStream {
  readonly #response: ServerResponse;
  readonly #source: ReportSource;
  readonly #stalledMs: number;
  readonly #unsubscribe: () => void;
  readonly #pulse: NodeJS.Timeout;
  /** Names of revisions to be told of, as they are when it is their turn. */
  readonly #pending = new Set<string>();
  /** Whether everything that there was at first has been told. */
  #isComplete = false;
  /** What is left of it; undefined while the replica does not know everything itself. */
  #first: RevisionReport[] | undefined;
  #flushing: NodeJS.Immediate | undefined;
  #lastWrite = performance.now();
  #isBlocked = false;
  #isEnded = false;

  constructor(
    response: ServerResponse,
    hello: ReplicaMessage & { type: 'hello' },
    source: ReportSource,
    stalledMs: number,
  ) {
    this.#response = response;
    this.#source = source;
    this.#stalledMs = stalledMs;
    response.writeHead(200, { 'content-type': 'application/x-ndjson', connection: 'close' });
    response.on('drain', () => {
      this.#isBlocked = false;
      this.#flushSoon();
    });
    response.on('close', () => this.#release());
    // A connection that broke also closes.
    response.on('error', () => undefined);
    this.#pulse = setInterval(() => this.#beat(), ALIVE_INTERVAL_MS);
    this.#pulse.unref();
    this.#unsubscribe = source.subscribe((names) => {
      for (const name of names) {
        this.#pending.add(name);
      }
      this.#flushSoon();
    });
    this.#write(hello);
    this.#flushSoon();
  }

  /** Ends it as streams end; the controller connects anew. */
  end(): void {
    this.#release();
    this.#response.end();
  }

  /** Ends it at once. */
  cut(): void {
    this.#release();
    this.#response.destroy();
  }

  #release(): void {
    clearInterval(this.#pulse);
    clearImmediate(this.#flushing);
    this.#unsubscribe();
    this.#pending.clear();
    this.#first = undefined;
    this.#isEnded = true;
  }

  /** What changes in one turn of the event loop is told together. */
  #flushSoon(): void {
    if (!this.#isBlocked && !this.#isEnded) {
      this.#flushing ??= setImmediate(() => {
        this.#flushing = undefined;
        this.#flush();
      });
    }
  }

  #flush(): void {
    if (!this.#isComplete) {
      this.#tellAll();
    } else if (this.#pending.size > 0) {
      this.#tellChanges();
    }
    if (!this.#isBlocked && (this.#first !== undefined || (this.#isComplete && this.#pending.size > 0))) {
      this.#flushSoon();
    }
  }

  #tellAll(): void {
    if (this.#first === undefined) {
      if (!this.#source.isSynced) {
        return;
      }
      this.#first = [...this.#source.reports()];
      this.#pending.clear();
    }
    const part = new Part();
    while (this.#first.length > 0 && part.takes(this.#first.at(-1))) {
      this.#first.pop();
    }
    this.#isComplete = this.#first.length === 0;
    if (this.#isComplete) {
      this.#first = undefined;
    }
    this.#writeLine(part.line([], this.#isComplete));
  }

  #tellChanges(): void {
    const part = new Part();
    const gone: string[] = [];
    for (const name of this.#pending) {
      const report = this.#source.report(name);
      if (!part.takes(report, name)) {
        break;
      }
      this.#pending.delete(name);
      if (report === undefined) {
        gone.push(name);
      }
    }
    this.#writeLine(part.line(gone, false));
  }

  #beat(): void {
    const quietMs = performance.now() - this.#lastWrite;
    if (this.#isBlocked && quietMs > this.#stalledMs) {
      this.cut();
    } else if (!this.#isBlocked && quietMs >= ALIVE_INTERVAL_MS / 2) {
      this.#write({ type: 'alive' });
    }
  }

  #write(message: ReplicaMessage): void {
    this.#writeLine(JSON.stringify(message));
  }

  #writeLine(line: string): void {
    this.#lastWrite = performance.now();
    this.#isBlocked = this.#response.destroyed || !this.#response.write(`${line}\n`);
  }
}

/** The reports of one line. */
class Part {
  readonly #texts: string[] = [];
  #bytes = ENVELOPE_BYTES;

  /** Takes a report, or what the name of one that is gone needs. False, and nothing is taken, when there is no room. */
  takes(report: RevisionReport | undefined, name = ''): boolean {
    const text = report === undefined ? JSON.stringify(name) : JSON.stringify(shortened(report));
    const bytes = Buffer.byteLength(text) + 1;
    const isFirst = this.#bytes === ENVELOPE_BYTES;
    if (!isFirst && this.#bytes + bytes > MAX_MESSAGE_BYTES) {
      return false;
    }
    this.#bytes += bytes;
    if (report !== undefined) {
      this.#texts.push(text);
    }
    return true;
  }

  line(gone: readonly string[], isComplete: boolean): string {
    const revisions = this.#texts.join(',');
    return `{"type":"report","revisions":[${revisions}],"gone":${JSON.stringify(gone)},"isComplete":${isComplete}}`;
  }
}

function shortened(report: RevisionReport): RevisionReport {
  const { message } = report;
  return message === undefined || message.length <= MAX_REPORT_TEXT
    ? report
    : { ...report, message: `${message.slice(0, MAX_REPORT_TEXT - 1).toWellFormed()}…` };
}
