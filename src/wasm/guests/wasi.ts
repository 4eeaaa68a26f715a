import { randomFillSync } from 'node:crypto';

import { WasmError } from '../binary/errors.ts';
import { HOST_FUNCTION_FUEL } from '../instrumentation/metering.ts';
import type { HostFunction, SandboxInstance } from './sandbox.ts';

/**
 * WASI preview 1 without access to the host: arguments, stdin, stdout, stderr, clocks and random numbers, but no files,
 * environment variables or sockets. Numbers are those of
 * https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
 */

/** The import module name of WASI preview 1. */
export const WASI_MODULE = 'wasi_snapshot_preview1';

/**
 * Maximum text on stderr (and on stdout, where it is logged) of one process. A Go panic with all goroutines takes some
 * 10 KiB.
 */
export const LOG_LIMIT_BYTES = 64 * 1024;

/** Longer log lines are split at this size, so that log viewers can show them. */
export const LOG_LINE_LIMIT_BYTES = 8 * 1024;

/**
 * Maximum unread input of a guest. Requests have at most 7 MiB; the rest is room for responses of host calls (lists of
 * cluster objects). Without a limit, a guest that calls but never reads would fill the host's memory.
 */
export const STDIN_LIMIT_BYTES = 128 * 1024 * 1024;

/** Maximum time that a process may sleep (see `WasiProcess.sleep`); more is treated as a hang. */
export const SLEEP_LIMIT_NS = 3_600_000_000_000n;

/** Resolution of the clocks, 0.1 ms: enough for timeouts, too coarse for timing attacks. */
const CLOCK_STEP_NS = 100_000n;

/** Fuel per buffer of a scatter or gather call (0.2 µs in a loop) or subscription of a poll. */
const ELEMENT_FUEL = 1_000;
/** Fuel for an invalid pointer: creating the error takes some 10 µs. */
const FAULT_FUEL = 10_000;
/** Bytes that the host copies per unit of fuel. */
const COPIED_BYTES_PER_FUEL = 16;
/** Random bytes are generated, charged and written in chunks of this size. */
const RANDOM_CHUNK_BYTES = 64 * 1024;
/** IOV_MAX of Linux. */
const MAX_IO_VECTORS = 1024;
/** Go and libc wait for only a few events at once. */
const MAX_SUBSCRIPTIONS = 1024;

const Errno = {
  success: 0,
  badf: 8,
  fault: 21,
  inval: 28,
  nosys: 52,
  notsock: 57,
  spipe: 70,
  notcapable: 76,
} as const;

const Rights = { fdRead: 1n << 1n, fdWrite: 1n << 6n, fdFilestatGet: 1n << 21n, pollFdReadwrite: 1n << 27n } as const;
const Clock = { realtime: 0, threadCpu: 3 } as const;
const EventType = { clock: 0, fdRead: 1, fdWrite: 2 } as const;
const SUBSCRIPTION_BYTES = 48;
const EVENT_BYTES = 32;
const ABSOLUTE_TIME_FLAG = 1;
const HANGUP_FLAG = 1;

/** Thrown by `proc_exit` to leave the guest; the caller of the guest catches it. */
export class ExitSignal extends Error {
  override readonly name: string = 'ExitSignal';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`the guest exited with exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Input and output of a process. */
export interface WasiProcessOptions {
  /** Arguments, the program's name first. Default: none. */
  readonly args?: readonly string[];
  /** Input on stdin. Default: empty. */
  readonly stdin?: Uint8Array;
  /** Captures stdout up to this many bytes. Default: stdout is logged like stderr. */
  readonly stdoutLimitBytes?: number;
  /** Receives stderr line by line. */
  readonly log: (text: string) => void;
}

/** File descriptors and clocks of one guest process: one run of a command, or one call of a waPC guest. */
export class WasiProcess {
  readonly args: readonly Uint8Array[];
  readonly stdin: InputQueue;
  readonly #captured: ByteBuffer | undefined;
  readonly #log: LineLog;
  readonly #closed = new Set<number>();
  #sleptNs = 0n;

  constructor(options: WasiProcessOptions) {
    this.args = (options.args ?? []).map((arg) => new TextEncoder().encode(`${arg}\0`));
    this.stdin = new InputQueue(options.stdin);
    this.#captured = options.stdoutLimitBytes === undefined ? undefined : new ByteBuffer(options.stdoutLimitBytes);
    this.#log = new LineLog(options.log);
  }

  /** A copy of the captured stdout. */
  stdout(): Uint8Array {
    return this.#captured?.bytes() ?? new Uint8Array(0);
  }

  /** Logs an unfinished line of stderr. Call it after the guest's last write. */
  flush(): void {
    this.#log.flush();
  }

  isOpen(fd: number): boolean {
    return fd <= 2 && !this.#closed.has(fd);
  }

  close(fd: number): void {
    this.#closed.add(fd);
  }

  /**
   * Writes to fd 1 or 2.
   * @throws WasmError `answer-too-large`
   */
  writeOutput(fd: number, bytes: Uint8Array): void {
    if (fd === 1 && this.#captured !== undefined) {
      this.#captured.append(bytes);
    } else {
      this.#log.append(bytes);
    }
  }

  /** The time of a WASI clock in nanoseconds. */
  now(clockId: number): bigint {
    const real = clockId === Clock.realtime ? BigInt(Date.now()) * 1_000_000n : process.hrtime.bigint();
    const now = real + this.#sleptNs;
    return now - (now % CLOCK_STEP_NS);
  }

  /**
   * Advances the guest's clocks instead of blocking the worker.
   * @throws WasmError `guest-error` after more than `SLEEP_LIMIT_NS` in total
   */
  sleep(durationNs: bigint): void {
    this.#sleptNs += durationNs + CLOCK_STEP_NS;
    if (this.#sleptNs > SLEEP_LIMIT_NS) {
      throw new WasmError(
        'guest-error',
        'the guest sleeps for more than an hour in total: it probably waits for an event that never happens',
      );
    }
  }
}

/** The guest's stdin. Bytes may be appended at any time, also after the guest read an end of file. */
export class InputQueue {
  readonly #chunks: Uint8Array[] = [];
  #available = 0;

  constructor(initial?: Uint8Array) {
    if (initial !== undefined) {
      this.append(initial);
    }
  }

  /** Number of unread bytes. */
  get available(): number {
    return this.#available;
  }

  /** Appends bytes without copying them. @throws WasmError `guest-error` beyond `STDIN_LIMIT_BYTES` */
  append(bytes: Uint8Array): void {
    if (this.#available + bytes.length > STDIN_LIMIT_BYTES) {
      throw new WasmError('guest-error', `the guest left more than ${STDIN_LIMIT_BYTES} bytes of its input unread`);
    }
    if (bytes.length > 0) {
      this.#chunks.push(bytes);
      this.#available += bytes.length;
    }
  }

  /** Removes and returns up to `limit` bytes; empty at the end of file. */
  take(limit: number): Uint8Array {
    const first = this.#chunks[0];
    if (first === undefined || limit === 0) {
      return new Uint8Array(0);
    }
    const part = first.subarray(0, limit);
    if (part.length === first.length) {
      this.#chunks.shift();
    } else {
      this.#chunks[0] = first.subarray(part.length);
    }
    this.#available -= part.length;
    return part;
  }
}

/** A growing buffer with a maximum size. */
class ByteBuffer {
  readonly #limit: number;
  #store: Uint8Array = new Uint8Array(0);
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#limit) {
      throw new WasmError('answer-too-large', `expected at most ${this.#limit} bytes of output, the guest wrote more`);
    }
    if (length > this.#store.length) {
      const grown = new Uint8Array(Math.min(this.#limit, Math.max(4096, length, this.#store.length * 2)));
      grown.set(this.#store.subarray(0, this.#length));
      this.#store = grown;
    }
    this.#store.set(bytes, this.#length);
    this.#length = length;
  }

  bytes(): Uint8Array {
    return this.#store.slice(0, this.#length);
  }
}

/** Splits a stream of bytes into log lines, up to `LOG_LIMIT_BYTES` in total. */
class LineLog {
  static readonly #newline = 10;
  readonly #log: (text: string) => void;
  readonly #line = new Uint8Array(LOG_LINE_LIMIT_BYTES);
  #length = 0;
  #left = LOG_LIMIT_BYTES;

  constructor(log: (text: string) => void) {
    this.#log = log;
  }

  append(bytes: Uint8Array): void {
    if (this.#left === 0) {
      return;
    }
    const accepted = bytes.subarray(0, this.#left);
    this.#left -= accepted.length;
    for (const byte of accepted) {
      if (byte === LineLog.#newline) {
        this.flush();
      } else {
        this.#line[this.#length++] = byte;
        if (this.#length === LOG_LINE_LIMIT_BYTES) {
          this.flush();
        }
      }
    }
    if (this.#left === 0) {
      this.flush();
      this.#log(`(the guest's log ends here: expected at most ${LOG_LIMIT_BYTES} bytes)`);
    }
  }

  flush(): void {
    if (this.#length > 0) {
      const text = new TextDecoder().decode(this.#line.subarray(0, this.#length));
      this.#length = 0;
      this.#log(text);
    }
  }
}

/** The instance, and a getter of its current process. */
interface Caller {
  readonly instance: SandboxInstance;
  readonly process: () => WasiProcess;
}

/**
 * The functions of WASI preview 1 for one instance. `process` is called on every use, so that an instance can have a
 * new process for each call. Unsupported functions return an error number; an invalid pointer returns `fault`.
 */
export function createWasi(instance: SandboxInstance, process: () => WasiProcess): Record<string, HostFunction> {
  const caller: Caller = { instance, process };
  const functions: Record<string, HostFunction> = {};
  for (const [name, implementation] of Object.entries({ ...constantFunctions(), ...supportedFunctions(caller) })) {
    functions[name] = guarded(instance, implementation);
  }
  return functions;
}

type WasiFunction = (...args: never[]) => number;

/** Charges the flat price and converts an invalid pointer to its error number. */
function guarded(instance: SandboxInstance, implementation: WasiFunction): HostFunction {
  return (...args: never[]): number => {
    instance.chargeFuel(HOST_FUNCTION_FUEL);
    try {
      return implementation(...args);
    } catch (error) {
      if (error instanceof WasmError && error.code === 'bad-pointer') {
        instance.chargeFuel(FAULT_FUEL);
        return Errno.fault;
      }
      throw error;
    }
  };
}

function supportedFunctions(caller: Caller): Record<string, WasiFunction> {
  const { instance, process } = caller;
  return {
    args_sizes_get: (countPtr: number, sizePtr: number) => {
      const { args } = process();
      instance.setUint32(countPtr, args.length);
      instance.setUint32(
        sizePtr,
        args.reduce((sum, arg) => sum + arg.length, 0),
      );
      return Errno.success;
    },
    args_get: (pointersPtr: number, bufferPtr: number) =>
      writeStrings(instance, process().args, pointersPtr, bufferPtr),
    environ_sizes_get: (countPtr: number, sizePtr: number) => {
      instance.setUint32(countPtr, 0);
      instance.setUint32(sizePtr, 0);
      return Errno.success;
    },
    environ_get: () => Errno.success,
    clock_res_get: (clockId: number, ptr: number) => {
      if (!isClock(clockId)) {
        return Errno.inval;
      }
      instance.setUint64(ptr, CLOCK_STEP_NS);
      return Errno.success;
    },
    clock_time_get: (clockId: number, _precision: bigint, ptr: number) => {
      if (!isClock(clockId)) {
        return Errno.inval;
      }
      instance.setUint64(ptr, process().now(clockId));
      return Errno.success;
    },
    random_get: (ptr: number, length: number) => writeRandom(instance, ptr, length >>> 0),
    sched_yield: () => Errno.success,
    proc_exit: (exitCode: number) => {
      throw new ExitSignal(exitCode >>> 0);
    },
    poll_oneoff: (inPtr: number, outPtr: number, count: number, eventCountPtr: number) =>
      poll(caller, { inPtr, outPtr, count: count >>> 0, eventCountPtr }),
    ...descriptorFunctions(caller),
  };
}

function descriptorFunctions({ instance, process }: Caller): Record<string, WasiFunction> {
  const onOpen = (fd: number, action: (process: WasiProcess) => number): number => {
    const current = process();
    return current.isOpen(fd >>> 0) ? action(current) : Errno.badf;
  };
  return {
    fd_read: (fd: number, vectorsPtr: number, count: number, readPtr: number) =>
      onOpen(fd, (current) =>
        fd === 0
          ? readInput(instance, current.stdin, { vectorsPtr, count: count >>> 0, resultPtr: readPtr })
          : Errno.badf,
      ),
    fd_write: (fd: number, vectorsPtr: number, count: number, writtenPtr: number) =>
      onOpen(fd, (current) =>
        fd === 0
          ? Errno.badf
          : writeOutput(instance, current, fd, { vectorsPtr, count: count >>> 0, resultPtr: writtenPtr }),
      ),
    fd_close: (fd: number) =>
      onOpen(fd, (current) => {
        current.close(fd);
        return Errno.success;
      }),
    fd_fdstat_get: (fd: number, ptr: number) =>
      onOpen(fd, () => {
        const ioRight = fd === 0 ? Rights.fdRead : Rights.fdWrite;
        const stat = new DataView(new ArrayBuffer(24));
        stat.setBigUint64(8, ioRight | Rights.fdFilestatGet | Rights.pollFdReadwrite, true);
        return writeRecord(instance, ptr, stat);
      }),
    // All zero: a file of unknown type and size.
    fd_filestat_get: (fd: number, ptr: number) =>
      onOpen(fd, () => writeRecord(instance, ptr, new DataView(new ArrayBuffer(64)))),
    fd_fdstat_set_flags: (fd: number) => onOpen(fd, () => Errno.success),
    fd_sync: (fd: number) => onOpen(fd, () => Errno.success),
    fd_datasync: (fd: number) => onOpen(fd, () => Errno.success),
    fd_seek: (fd: number) => onOpen(fd, () => Errno.spipe),
    fd_tell: (fd: number) => onOpen(fd, () => Errno.spipe),
    fd_pread: (fd: number) => onOpen(fd, () => Errno.spipe),
    fd_pwrite: (fd: number) => onOpen(fd, () => Errno.spipe),
    fd_advise: (fd: number) => onOpen(fd, () => Errno.spipe),
    fd_allocate: (fd: number) => onOpen(fd, () => Errno.spipe),
    sock_recv: (fd: number) => onOpen(fd, () => Errno.notsock),
    sock_send: (fd: number) => onOpen(fd, () => Errno.notsock),
    sock_shutdown: (fd: number) => onOpen(fd, () => Errno.notsock),
    sock_accept: (fd: number) => onOpen(fd, () => Errno.notsock),
  };
}

/** Functions that libraries import for files, which guests do not have. Each always returns the same error number. */
function constantFunctions(): Record<string, WasiFunction> {
  const answers: Record<number, readonly string[]> = {
    [Errno.badf]: ['fd_prestat_get', 'fd_prestat_dir_name', 'fd_readdir', 'fd_renumber'],
    [Errno.notcapable]: [
      'fd_fdstat_set_rights',
      'fd_filestat_set_size',
      'fd_filestat_set_times',
      'path_create_directory',
      'path_filestat_get',
      'path_filestat_set_times',
      'path_link',
      'path_open',
      'path_readlink',
      'path_remove_directory',
      'path_rename',
      'path_symlink',
      'path_unlink_file',
    ],
    [Errno.nosys]: ['proc_raise'],
  };
  return Object.fromEntries(
    Object.entries(answers).flatMap(([errno, names]) => names.map((name) => [name, () => Number(errno)] as const)),
  );
}

function isClock(clockId: number): boolean {
  return clockId >>> 0 <= Clock.threadCpu;
}

function chargeBytes(instance: SandboxInstance, bytes: number): void {
  instance.chargeFuel(Math.ceil(bytes / COPIED_BYTES_PER_FUEL));
}

function writeRecord(instance: SandboxInstance, ptr: number, record: DataView): number {
  instance.write(ptr, new Uint8Array(record.buffer));
  return Errno.success;
}

function writeStrings(
  instance: SandboxInstance,
  strings: readonly Uint8Array[],
  pointersPtr: number,
  bufferPtr: number,
): number {
  let at = bufferPtr >>> 0;
  strings.forEach((bytes, index) => {
    instance.setUint32((pointersPtr >>> 0) + index * 4, at);
    instance.write(at, bytes);
    at += bytes.length;
  });
  return Errno.success;
}

function writeRandom(instance: SandboxInstance, ptr: number, length: number): number {
  // Charged per byte before anything is generated: a random byte takes about a nanosecond.
  instance.view(ptr, length);
  instance.chargeFuel(length);
  for (let done = 0; done < length; done += RANDOM_CHUNK_BYTES) {
    const chunk = new Uint8Array(Math.min(RANDOM_CHUNK_BYTES, length - done));
    instance.write((ptr >>> 0) + done, randomFillSync(chunk));
  }
  return Errno.success;
}

/** Arguments of scatter and gather calls. */
interface VectorCall {
  readonly vectorsPtr: number;
  readonly count: number;
  readonly resultPtr: number;
}

/** The buffers of a scatter or gather call, checked to be within the guest's memory. */
function ioVectors(instance: SandboxInstance, { vectorsPtr, count }: VectorCall): { ptr: number; length: number }[] {
  instance.chargeFuel(count * ELEMENT_FUEL);
  return Array.from({ length: count }, (_, index) => {
    const at = (vectorsPtr >>> 0) + index * 8;
    const vector = { ptr: instance.getUint32(at), length: instance.getUint32(at + 4) };
    instance.view(vector.ptr, vector.length);
    return vector;
  });
}

/** Passes each vector to `transfer`, and writes the sum of what that returns: the number of bytes transferred. */
function transferVectors(
  instance: SandboxInstance,
  call: VectorCall,
  transfer: (ptr: number, length: number) => number,
): number {
  if (call.count > MAX_IO_VECTORS) {
    return Errno.inval;
  }
  const vectors = ioVectors(instance, call);
  instance.setUint32(call.resultPtr, 0);
  let total = 0;
  for (const { ptr, length } of vectors) {
    total += transfer(ptr, length);
  }
  instance.setUint32(call.resultPtr, total);
  return Errno.success;
}

function readInput(instance: SandboxInstance, stdin: InputQueue, call: VectorCall): number {
  return transferVectors(instance, call, (ptr, length) => {
    let filled = 0;
    while (filled < length && stdin.available > 0) {
      const part = stdin.take(length - filled);
      chargeBytes(instance, part.length);
      instance.write(ptr + filled, part);
      filled += part.length;
    }
    return filled;
  });
}

function writeOutput(instance: SandboxInstance, process: WasiProcess, fd: number, call: VectorCall): number {
  return transferVectors(instance, call, (ptr, length) => {
    chargeBytes(instance, length);
    process.writeOutput(fd, instance.view(ptr, length));
    return length;
  });
}

/** Arguments of `poll_oneoff`. */
interface PollCall {
  readonly inPtr: number;
  readonly outPtr: number;
  readonly count: number;
  readonly eventCountPtr: number;
}

interface PollEvent {
  readonly userdata: bigint;
  readonly type: number;
  readonly errno: number;
  readonly bytes: number;
  readonly hangup: boolean;
}

interface Alarm {
  readonly userdata: bigint;
  readonly remainingNs: bigint;
}

/** Reports ready events; if there are none, advances the clocks to the next alarm. Never blocks. */
function poll({ instance, process }: Caller, { inPtr, outPtr, count, eventCountPtr }: PollCall): number {
  if (count === 0 || count > MAX_SUBSCRIPTIONS) {
    return Errno.inval;
  }
  const current = process();
  const subscriptions = instance.read(inPtr, count * SUBSCRIPTION_BYTES);
  instance.view(outPtr, count * EVENT_BYTES);
  instance.chargeFuel(count * ELEMENT_FUEL);

  const alarms: Alarm[] = [];
  const events: PollEvent[] = [];
  for (let at = 0; at < subscriptions.length; at += SUBSCRIPTION_BYTES) {
    const subscription = new DataView(subscriptions.buffer, subscriptions.byteOffset + at, SUBSCRIPTION_BYTES);
    const userdata = subscription.getBigUint64(0, true);
    const type = subscription.getUint8(8);
    if (type === EventType.clock && isClock(subscription.getUint32(16, true))) {
      alarms.push({ userdata, remainingNs: remainingTime(current, subscription) });
    } else if (type === EventType.fdRead || type === EventType.fdWrite) {
      events.push(descriptorEvent(current, userdata, type, subscription.getUint32(16, true)));
    } else {
      events.push({ userdata, type, errno: Errno.inval, bytes: 0, hangup: false });
    }
  }

  const nextNs = alarms.reduce<bigint | undefined>(
    (least, { remainingNs }) => (least === undefined || remainingNs < least ? remainingNs : least),
    undefined,
  );
  const sleepNs = events.length === 0 && nextNs !== undefined ? nextNs : 0n;
  if (sleepNs > 0n) {
    current.sleep(sleepNs);
  }
  for (const { userdata, remainingNs } of alarms) {
    if (remainingNs <= sleepNs) {
      events.push({ userdata, type: EventType.clock, errno: Errno.success, bytes: 0, hangup: false });
    }
  }
  events.forEach((event, index) => writeEvent(instance, (outPtr >>> 0) + index * EVENT_BYTES, event));
  instance.setUint32(eventCountPtr, events.length);
  return Errno.success;
}

function remainingTime(process: WasiProcess, subscription: DataView): bigint {
  const timeoutNs = subscription.getBigUint64(24, true);
  const isAbsolute = (subscription.getUint16(40, true) & ABSOLUTE_TIME_FLAG) !== 0;
  const remainingNs = isAbsolute ? timeoutNs - process.now(subscription.getUint32(16, true)) : timeoutNs;
  return remainingNs > 0n ? remainingNs : 0n;
}

function descriptorEvent(process: WasiProcess, userdata: bigint, type: number, fd: number): PollEvent {
  const isRead = type === EventType.fdRead;
  if (!process.isOpen(fd) || isRead !== (fd === 0)) {
    return { userdata, type, errno: Errno.badf, bytes: 0, hangup: false };
  }
  const bytes = isRead ? process.stdin.available : 0;
  return { userdata, type, errno: Errno.success, bytes, hangup: isRead && bytes === 0 };
}

function writeEvent(instance: SandboxInstance, ptr: number, event: PollEvent): void {
  const record = new DataView(new ArrayBuffer(EVENT_BYTES));
  record.setBigUint64(0, event.userdata, true);
  record.setUint16(8, event.errno, true);
  record.setUint8(10, event.type);
  record.setBigUint64(16, BigInt(event.bytes), true);
  record.setUint16(24, event.hangup ? HANGUP_FLAG : 0, true);
  writeRecord(instance, ptr, record);
}
