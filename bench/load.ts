// A load generator that costs little itself: raw TLS connections, prepared request bytes, answers recognised by their
// Content-Length. In a process of its own: node load.ts '{"port":…}' prints one JSON line.
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';

/** What to send, and for how long. */
export interface LoadOptions {
  readonly port: number;
  readonly caFile: string;
  readonly path: string;
  readonly bodyFile: string;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second over all connections; undefined: as fast as answers come. */
  readonly rate?: number;
  /** Text that every answer must contain. */
  readonly expect?: string;
}

/** What came of it. Times in milliseconds. */
export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Answers that were not HTTP 200 with the expected text, and connections that broke. */
  readonly failed: number;
}

/** Runs the load in this process. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const body = readFileSync(options.bodyFile);
  const head = `POST ${options.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const request = Buffer.concat([Buffer.from(head), body]);
  const ca = readFileSync(options.caFile);
  const times: number[] = [];
  let failed = 0;
  const started = performance.now();
  const end = started + options.seconds * 1000;
  const intervalMs = options.rate === undefined ? 0 : (1000 * options.connections) / options.rate;
  await Promise.all(
    Array.from(
      { length: options.connections },
      (_, index) =>
        new Promise<void>((resolve) => {
          const socket = connect({ host: '127.0.0.1', port: options.port, servername: 'localhost', ca });
          socket.setNoDelay(true);
          let due = started + (index * intervalMs) / options.connections;
          drive(socket, request, options.expect, {
            next: () => {
              due = intervalMs === 0 ? performance.now() : due + intervalMs;
              return performance.now() < end ? Math.max(0, due - performance.now()) : undefined;
            },
            done: (ms, ok) => {
              times.push(ms);
              failed += ok ? 0 : 1;
            },
            broke: () => {
              failed += 1;
            },
            closed: resolve,
          });
        }),
    ),
  );
  const elapsed = (performance.now() - started) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
  return { requests: times.length, perSecond: times.length / elapsed, p50: at(0.5), p99: at(0.99), max: at(1), failed };
}

interface Driver {
  /** Milliseconds until the next request is due; undefined when there is none. */
  next(): number | undefined;
  done(ms: number, ok: boolean): void;
  broke(): void;
  closed(): void;
}

/** One connection: one request after the other. */
function drive(socket: TLSSocket, request: Buffer, expect: string | undefined, driver: Driver): void {
  let sentAt = 0;
  let received: Buffer = Buffer.alloc(0);
  let isFinished = false;
  const send = (): void => {
    const delay = driver.next();
    if (delay === undefined) {
      isFinished = true;
      socket.end();
      return;
    }
    const go = (): void => {
      sentAt = performance.now();
      socket.write(request);
    };
    if (delay > 0.5) {
      setTimeout(go, delay);
    } else {
      go();
    }
  };
  socket.on('secureConnect', send);
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd === -1) {
      return;
    }
    const head = received.toString('latin1', 0, headEnd);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (received.length < headEnd + 4 + length) {
      return;
    }
    const ok = head.startsWith('HTTP/1.1 200') && (expect === undefined || received.includes(expect));
    received = Buffer.alloc(0);
    driver.done(performance.now() - sentAt, ok);
    send();
  });
  socket.on('error', () => driver.broke());
  socket.on('close', () => {
    if (!isFinished) {
      driver.broke();
    }
    driver.closed();
  });
}

const argument = process.argv[2];
if (import.meta.main && argument !== undefined) {
  process.stdout.write(`${JSON.stringify(await runLoad(JSON.parse(argument) as LoadOptions))}\n`);
}
