import { randomFillSync } from 'node:crypto';

import { WasmError } from './errors.ts';
import { HOST_FUNCTION_FUEL } from './metering.ts';
import type { HostFunction, SandboxInstance } from './sandbox.ts';

/**
 * WASI preview 1 for guests that may touch nothing: arguments, stdin, stdout, stderr, clocks and random numbers.
 * There are no files, no environment, no sockets. Numbers are those of the preview 1 witx files.
 */

/** The import module name of WASI preview 1. */
export const WASI_MODULE = 'wasi_snapshot_preview1';

/** Longest stderr (and, where it is logged, stdout) text of one process: a Go panic with all goroutines is some 10 KiB. */
export const LOG_LIMIT_BYTES = 64 * 1024;

/** A log line is cut into pieces of this size, so that one line stays readable in a log viewer. */
export const LOG_LINE_LIMIT_BYTES = 8 * 1024;

/**
 * Input that a guest has not read yet. Requests are at most 7 MiB; the rest is room for answers of host calls
 * (lists of cluster objects). A guest that only asks and never reads would otherwise fill the host's memory.
 */
export const STDIN_LIMIT_BYTES = 128 * 1024 * 1024;

/** Time that a guest may sleep through in one process; see `WasiProcess.sleep`. More than that is a hang. */
export const SLEEP_LIMIT_NS = 3_600_000_000_000n;

/** Clocks tick in steps of 0.1 ms: enough for time-outs, too coarse to time the memory of a neighbour. */
export const CLOCK_STEP_NS = 100_000n;

/** Fuel for a buffer of a scatter or gather call (0.2 µs in a loop), or a subscription of a poll: each is read, checked and kept. */
const ELEMENT_FUEL = 1_000;
/** Fuel for a wild pointer: the error that says so takes some 10 µs. */
const FAULT_FUEL = 10_000;
/** Bytes that the host copies for one unit of fuel. */
const COPIED_BYTES_PER_FUEL = 16;
/** Random bytes are far dearer than copied ones. */
const RANDOM_CHUNK_BYTES = 64 * 1024;
/** As IOV_MAX of Linux; more buffers than this in one call are a mistake or an attack. */
const MAX_IO_VECTORS = 1024;
/** Go and libc wait for at most a few things at once. */
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

/** Thrown by `proc_exit` to leave the guest; whoever called the guest catches it. */
export class ExitSignal extends Error {
  override readonly name: string = 'ExitSignal';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`the guest ended itself with exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** What a process is given. */
export interface WasiProcessOptions {
  /** Arguments, the program's name first. Default: none. */
  readonly args?: readonly string[];
  /** What the guest finds on stdin. Default: nothing. */
  readonly stdin?: Uint8Array;
  /** Captures stdout, up to this many bytes. Default: stdout is logged like stderr. */
  readonly stdoutLimitBytes?: number;
  /** Receives stderr line by line. */
  readonly log: (text: string) => void;
}

/** The state behind one guest's file descriptors and clocks: one run of a command, or one call of a waPC guest. */
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

  /** What was written to stdout so far (a copy). */
  stdout(): Uint8Array {
    return this.#captured?.bytes() ?? new Uint8Array(0);
  }

  /** Logs what stderr holds of an unfinished line. Call it when the guest is done. */
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
   * Takes output of fd 1 or 2.
   * @throws WasmError `answer-too-large`
   */
  writeOutput(fd: number, bytes: Uint8Array): void {
    if (fd === 1 && this.#captured !== undefined) {
      this.#captured.append(bytes);
    } else {
      this.#log.append(bytes);
    }
  }

  /** Nanoseconds of a WASI clock. */
  now(clockId: number): bigint {
    const real = clockId === Clock.realtime ? BigInt(Date.now()) * 1_000_000n : process.hrtime.bigint();
    const now = real + this.#sleptNs;
    return now - (now % CLOCK_STEP_NS);
  }

  /**
   * Lets the guest sleep without holding up the worker: its clocks jump ahead instead.
   * @throws WasmError `guest-error` when it slept more than `SLEEP_LIMIT_NS` in all
   */
  sleep(durationNs: bigint): void {
    this.#sleptNs += durationNs + CLOCK_STEP_NS;
    if (this.#sleptNs > SLEEP_LIMIT_NS) {
      throw new WasmError(
        'guest-error',
        'the guest wanted to sleep for more than an hour: it waits for something that never comes',
      );
    }
  }
}

/** The bytes that a guest reads; more may be appended at any time, after an end of file too. */
export class InputQueue {
  readonly #chunks: Uint8Array[] = [];
  #available = 0;

  constructor(initial?: Uint8Array) {
    if (initial !== undefined) {
      this.append(initial);
    }
  }

  /** Bytes that wait to be read. */
  get available(): number {
    return this.#available;
  }

  /** Adds bytes at the end; they are not copied. @throws WasmError `guest-error` beyond `STDIN_LIMIT_BYTES` */
  append(bytes: Uint8Array): void {
    if (this.#available + bytes.length > STDIN_LIMIT_BYTES) {
      throw new WasmError('guest-error', `the guest left more than ${STDIN_LIMIT_BYTES} bytes of its input unread`);
    }
    if (bytes.length > 0) {
      this.#chunks.push(bytes);
      this.#available += bytes.length;
    }
  }

  /** Removes and returns up to `limit` bytes, in order; empty at the end of file. */
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

/** A growing buffer with an upper bound. */
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

/** Turns a stream of bytes into log lines, up to `LOG_LIMIT_BYTES` in all. */
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

/** What the functions below share: the guest's memory and the process of the moment. */
interface Caller {
  readonly instance: SandboxInstance;
  readonly process: () => WasiProcess;
}

/**
 * All functions of WASI preview 1 over one instance. `process` is asked at every call, so that an instance that serves
 * many calls can have a new process each time. What there is no use for answers with an error number; a wild pointer
 * answers `fault`.
 */
export function createWasi(instance: SandboxInstance, process: () => WasiProcess): Record<string, HostFunction> {
  const caller: Caller = { instance, process };
  const functions: Record<string, HostFunction> = {};
  for (const [name, implementation] of Object.entries({ ...absentFunctions(), ...presentFunctions(caller) })) {
    functions[name] = guarded(instance, implementation);
  }
  return functions;
}

type WasiFunction = (...args: never[]) => number;

/** Charges for the entry and turns a pointer that lies outside of the guest's memory into its error number. */
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

function presentFunctions(caller: Caller): Record<string, WasiFunction> {
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
    // A size, times and a type of 0 say "a stream of an unknown kind".
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

/** Functions that modules import because their libraries can use files, and whose answer is always the same. */
function absentFunctions(): Record<string, WasiFunction> {
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
  // One unit per byte, before anything is done: random bytes cost the host about a nanosecond each.
  instance.view(ptr, length);
  instance.chargeFuel(length);
  for (let done = 0; done < length; done += RANDOM_CHUNK_BYTES) {
    const chunk = new Uint8Array(Math.min(RANDOM_CHUNK_BYTES, length - done));
    instance.write((ptr >>> 0) + done, randomFillSync(chunk));
  }
  return Errno.success;
}

/** The arguments of scatter and gather calls. */
interface VectorCall {
  readonly vectorsPtr: number;
  readonly count: number;
  readonly resultPtr: number;
}

/** The buffers of a scatter or gather call, every one of them checked to lie within the guest's memory. */
function ioVectors(instance: SandboxInstance, { vectorsPtr, count }: VectorCall): { ptr: number; length: number }[] {
  instance.chargeFuel(count * ELEMENT_FUEL);
  return Array.from({ length: count }, (_, index) => {
    const at = (vectorsPtr >>> 0) + index * 8;
    const vector = { ptr: instance.getUint32(at), length: instance.getUint32(at + 4) };
    instance.view(vector.ptr, vector.length);
    return vector;
  });
}

function readInput(instance: SandboxInstance, stdin: InputQueue, call: VectorCall): number {
  if (call.count > MAX_IO_VECTORS) {
    return Errno.inval;
  }
  const vectors = ioVectors(instance, call);
  instance.setUint32(call.resultPtr, 0);
  let total = 0;
  for (const { ptr, length } of vectors) {
    let filled = 0;
    while (filled < length && stdin.available > 0) {
      const part = stdin.take(length - filled);
      chargeBytes(instance, part.length);
      instance.write(ptr + filled, part);
      filled += part.length;
    }
    total += filled;
  }
  instance.setUint32(call.resultPtr, total);
  return Errno.success;
}

function writeOutput(instance: SandboxInstance, process: WasiProcess, fd: number, call: VectorCall): number {
  if (call.count > MAX_IO_VECTORS) {
    return Errno.inval;
  }
  const vectors = ioVectors(instance, call);
  instance.setUint32(call.resultPtr, 0);
  let total = 0;
  for (const { ptr, length } of vectors) {
    chargeBytes(instance, length);
    process.writeOutput(fd, instance.view(ptr, length));
    total += length;
  }
  instance.setUint32(call.resultPtr, total);
  return Errno.success;
}

/** The arguments of `poll_oneoff`. */
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

/** Reports what is ready; when nothing is, jumps to the time of the next alarm. Never blocks. */
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
