// GET /stream: reports of a replica's revisions as lines of JSON, for one controller.
import type { ServerResponse } from 'node:http';
import { ALIVE_INTERVAL_MS, MAX_MESSAGE_BYTES, MAX_REPORT_TEXT, MAX_USES_IN_MESSAGE } from './replica-protocol.ts';
import type { ReplicaMessage, RevisionReport } from './replica-protocol.ts';
import type { ReportSource } from './report-source.ts';
import type { UseSource } from './use-source.ts';
import { shortened } from '../values/index.ts';

/**
 * A controller that does not read for this long is disconnected: it considers the replica lost by then, and a new
 * stream catches up faster. Milliseconds.
 */
export const STALLED_MS = 5_000;
/** Room for the fields around the reports of a line. Bytes. */
const ENVELOPE_BYTES = 256;

/** What a stream reports. */
export interface StreamSources {
  readonly reports: ReportSource;
  /** Default: uses of exceptions are not counted. */
  readonly uses?: UseSource | undefined;
  readonly stalledMs: number;
}

/**
 * One stream. It buffers at most one unread line; later changes are kept by name, so a slow controller gets the latest
 * state instead of every change.
 */
export class ControlStream {
  readonly #response: ServerResponse;
  readonly #source: ReportSource;
  readonly #uses: UseSource | undefined;
  readonly #stalledMs: number;
  readonly #unsubscribe: () => void;
  readonly #heartbeats: NodeJS.Timeout;
  /** Names of revisions to report, in their state at the time of writing. */
  readonly #pending = new Set<string>();
  /** Exceptions to report, with their count at the time of writing; undefined before the first message about them. */
  #pendingUses: Set<string> | undefined;
  /** Whether the initial reports have been written. */
  #isComplete = false;
  /** Initial reports that are not written yet; undefined before the replica is synced. */
  #initial: RevisionReport[] | undefined;
  #flushing: NodeJS.Immediate | undefined;
  #lastWrite = performance.now();
  #isBlocked = false;
  #isEnded = false;

  constructor(
    response: ServerResponse,
    hello: ReplicaMessage & { type: 'hello' },
    { reports: source, uses, stalledMs }: StreamSources,
  ) {
    this.#response = response;
    this.#source = source;
    this.#uses = uses;
    this.#stalledMs = stalledMs;
    response.writeHead(200, { 'content-type': 'application/x-ndjson', connection: 'close' });
    response.on('drain', () => {
      this.#isBlocked = false;
      this.#flushSoon();
    });
    response.on('close', () => this.#release());
    // A broken connection also emits `close`.
    response.on('error', () => undefined);
    this.#heartbeats = setInterval(() => this.#heartbeat(), ALIVE_INTERVAL_MS);
    this.#heartbeats.unref();
    const endReports = source.subscribe((names) => {
      for (const name of names) {
        this.#pending.add(name);
      }
      this.#flushSoon();
    });
    const endUses = uses?.subscribe((uids) => {
      for (const uid of uids) {
        this.#pendingUses?.add(uid);
      }
      this.#flushSoon();
    });
    this.#unsubscribe = () => {
      endReports();
      endUses?.();
    };
    this.#write(hello);
    this.#flushSoon();
  }

  /** Ends the response after the last changes; the controller reconnects. */
  end(): void {
    if (this.#isComplete && !this.#isBlocked && !this.#isEnded) {
      if (this.#pending.size > 0) {
        this.#writeChanges();
      }
      if (this.#hasUses()) {
        this.#writeUses();
      }
    }
    this.#release();
    this.#response.end();
  }

  /** Destroys the connection. */
  destroy(): void {
    this.#release();
    this.#response.destroy();
  }

  #release(): void {
    clearInterval(this.#heartbeats);
    clearImmediate(this.#flushing);
    this.#unsubscribe();
    this.#pending.clear();
    this.#pendingUses?.clear();
    this.#initial = undefined;
    this.#isEnded = true;
  }

  /** Collects the changes of one turn of the event loop in one line. */
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
      this.#writeInitial();
    } else if (this.#pending.size > 0) {
      this.#writeChanges();
    } else if (this.#hasUses()) {
      this.#writeUses();
    }
    const hasChanges = this.#pending.size > 0 || this.#hasUses();
    if (!this.#isBlocked && (this.#initial !== undefined || (this.#isComplete && hasChanges))) {
      this.#flushSoon();
    }
  }

  #writeInitial(): void {
    if (this.#initial === undefined) {
      if (!this.#source.isSynced) {
        return;
      }
      this.#initial = [...this.#source.reports()];
      this.#pending.clear();
    }
    const line = new ReportLine();
    while (this.#initial.length > 0 && line.add(this.#initial.at(-1))) {
      this.#initial.pop();
    }
    this.#isComplete = this.#initial.length === 0;
    if (this.#isComplete) {
      this.#initial = undefined;
    }
    this.#writeLine(line.text([], this.#isComplete));
  }

  #writeChanges(): void {
    const line = new ReportLine();
    const gone: string[] = [];
    for (const name of this.#pending) {
      const report = this.#source.report(name);
      if (!line.add(report, name)) {
        break;
      }
      this.#pending.delete(name);
      if (report === undefined) {
        gone.push(name);
      }
    }
    this.#writeLine(line.text(gone, false));
  }

  /** Whether there is a message about uses to write: one after the initial reports, also without any. */
  #hasUses(): boolean {
    return this.#uses !== undefined && (this.#pendingUses === undefined || this.#pendingUses.size > 0);
  }

  #writeUses(): void {
    this.#pendingUses ??= new Set([...(this.#uses?.uses() ?? [])].map(({ uid }) => uid));
    const uids = [...this.#pendingUses].slice(0, MAX_USES_IN_MESSAGE);
    for (const uid of uids) {
      this.#pendingUses.delete(uid);
    }
    this.#write({ type: 'exceptions', uses: uids.flatMap((uid) => this.#uses?.use(uid) ?? []) });
  }

  #heartbeat(): void {
    const quietMs = performance.now() - this.#lastWrite;
    if (this.#isBlocked && quietMs > this.#stalledMs) {
      this.destroy();
    } else if (!this.#isBlocked && quietMs >= ALIVE_INTERVAL_MS / 2) {
      this.#write({ type: 'alive', time: new Date().toISOString() });
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

/** One line of reports. */
class ReportLine {
  readonly #texts: string[] = [];
  #bytes = ENVELOPE_BYTES;

  /** Adds a report, or the name of a removed revision. False if the line is full. */
  add(report: RevisionReport | undefined, name = ''): boolean {
    const text = report === undefined ? JSON.stringify(name) : JSON.stringify(withShortMessage(report));
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

  text(gone: readonly string[], isComplete: boolean): string {
    const revisions = this.#texts.join(',');
    return `{"type":"report","revisions":[${revisions}],"gone":${JSON.stringify(gone)},"isComplete":${isComplete}}`;
  }
}

function withShortMessage(report: RevisionReport): RevisionReport {
  const { message } = report;
  return message === undefined ? report : { ...report, message: shortened(message, MAX_REPORT_TEXT) };
}
