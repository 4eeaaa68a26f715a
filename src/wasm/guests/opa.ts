import type { RE2JS } from 're2js';
import type { CallContext } from './call.ts';
import type { CompiledModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import { INIT_FUEL } from '../instrumentation/metering.ts';
import { BuiltinError, parseRegoText, regoText } from './opa/index.ts';
import type { BuiltinContext, OpaBuiltin, OpaBuiltins, RegoValue } from './opa/index.ts';
import type { InstanceShare } from './instance-memory.ts';
import { Sandbox } from './sandbox.ts';
import type { HostFunction, HostImports, SandboxInstance } from './sandbox.ts';
import { LOG_LIMIT_BYTES, LOG_LINE_LIMIT_BYTES } from './wasi.ts';
import { parseJson } from '../../values/index.ts';

export { opaBuiltins } from './opa/index.ts';
export type { BuiltinContext, OpaBuiltin, OpaBuiltins } from './opa/index.ts';

/** The ABI's major version. Minor versions only add functions, and this host needs none of them. */
const ABI_VERSION = 1;

/** Functions of ABI 1.0 that an evaluation calls. */
const REQUIRED_EXPORTS = [
  'builtins',
  'entrypoints',
  'eval',
  'opa_eval_ctx_get_result',
  'opa_eval_ctx_new',
  'opa_eval_ctx_set_data',
  'opa_eval_ctx_set_entrypoint',
  'opa_eval_ctx_set_input',
  'opa_json_dump',
  'opa_json_parse',
  'opa_malloc',
  'opa_value_dump',
  'opa_value_parse',
];

/** Builtins that need the network, which are never available. The error message says so. */
const NETWORK_BUILTINS: ReadonlySet<string> = new Set(['http.send', 'net.lookup_ip_addr']);

/** Fuel of one builtin call without its operands and result: about the cost of the transition to the host. */
const FUEL_PER_CALL = 2000;

/** Fuel per byte of an operand or result, which is serialized on one side and parsed on the other (10 ns). */
const FUEL_PER_BYTE = 20;

/** Fuel per value or separator of a result (0.1 µs). */
const FUEL_PER_TOKEN = 200;

/** Bytes that the host copies per unit of fuel; the same rate as memory.copy. */
const COPIED_BYTES_PER_FUEL = 16;

/** Maximum length of an abort message; OPA's are one line. */
const ABORT_TEXT_BYTES = 1024;

/** Maximum size of the JSON maps of builtins and entrypoints: enough for thousands of names. */
const MAP_TEXT_BYTES = 1024 * 1024;

const NS_PER_MS = 1_000_000n;

interface LinkedBuiltin {
  readonly name: string;
  readonly run: OpaBuiltin;
}

/** The state of the evaluation in progress. */
interface Evaluation {
  readonly context: BuiltinContext;
  readonly log: (text: string) => void;
}

/**
 * A Rego policy that OPA compiled to WebAssembly (ABI 1.x, https://www.openpolicyagent.org/docs/wasm). The host
 * provides only its memory and the builtins that OPA does not compile into the module.
 */
export class OpaGuest {
  readonly #sandbox: Sandbox;
  readonly #available: OpaBuiltins;
  /** Undefined until the module is linked. */
  #entrypoints: ReadonlyMap<string, number> | undefined;
  readonly #builtins = new Map<number, LinkedBuiltin>();
  readonly #patterns = new Map<string, RE2JS>();
  #evaluation: Evaluation | undefined;

  /**
   * @param builtins the builtins available to the module, normally `opaBuiltins`
   * @throws WasmError `export-missing`
   */
  constructor(compiled: CompiledModule, builtins: OpaBuiltins, share?: InstanceShare) {
    checkExports(compiled);
    this.#available = builtins;
    this.#sandbox = new Sandbox(compiled, { imports: (instance) => this.#imports(instance) }, share);
  }

  /**
   * Starts and links the module now instead of with its first evaluation, see {@link Sandbox.start}.
   * @throws WasmError `abi-unsupported`, `builtin-missing` (naming all of them), and any error of the module's start
   */
  start(): void {
    this.#link(INIT_FUEL);
  }

  /**
   * Entrypoint ids by name (for example `policy/main`), as `evaluate` takes them.
   * @throws WasmError as {@link start}
   */
  get entrypoints(): ReadonlyMap<string, number> {
    return this.#link(INIT_FUEL);
  }

  /** Names of the host's builtins that the module uses. @throws WasmError as {@link start} */
  get usedBuiltins(): readonly string[] {
    this.start();
    return Array.from(this.#builtins.values(), ({ name }) => name);
  }

  /** Fuel used by the last evaluation. */
  get fuelUsed(): number {
    return this.#sandbox.fuelUsed;
  }

  /**
   * Evaluates one entrypoint.
   * @param entrypoint an id of `entrypoints`
   * @param inputJson the document `input`
   * @param dataJson the base document `data`, an object
   * @returns OPA's result set as JSON: `[{"result": ...}]`, or `[]` when the entrypoint is undefined
   * @throws WasmError `trap` (with the policy's message when it aborted), `out-of-fuel`, `answer-too-large`,
   * `guest-error` (the guest cannot parse a document), `bad-pointer`, and as {@link start}
   */
  evaluate(entrypoint: number, inputJson: Uint8Array | string, dataJson: string, context: CallContext): string {
    this.#link(Math.min(context.limits.fuel, INIT_FUEL));
    try {
      return this.#sandbox.call(context.limits.fuel, (instance) => {
        this.#evaluation = this.#begin(instance, context);
        const data = parseDocument(instance, 'data', dataJson);
        const input = parseDocument(instance, 'input', inputJson);
        const evaluation = Number(instance.func('opa_eval_ctx_new')());
        instance.func('opa_eval_ctx_set_input')(evaluation, input);
        instance.func('opa_eval_ctx_set_data')(evaluation, data);
        instance.func('opa_eval_ctx_set_entrypoint')(evaluation, entrypoint);
        const status = Number(instance.func('eval')(evaluation));
        if (status !== 0) {
          throw new WasmError('guest-error', `the policy's evaluation failed: expected status 0, got ${status}`);
        }
        const result = Number(instance.func('opa_eval_ctx_get_result')(evaluation));
        return readText(instance, Number(instance.func('opa_json_dump')(result)), context.limits.answerBytes);
      });
    } finally {
      this.#evaluation = undefined;
    }
  }

  #begin(instance: SandboxInstance, { log }: CallContext): Evaluation {
    const limitedLog = limitLog(log);
    return {
      log: limitedLog,
      context: {
        nowNs: BigInt(Date.now()) * NS_PER_MS,
        randomResults: new Map(),
        patterns: this.#patterns,
        charge: (fuel) => instance.chargeFuel(fuel),
        log: limitedLog,
      },
    };
  }

  /** Reads the module's maps, once. Returns its entrypoints. */
  #link(fuel: number): ReadonlyMap<string, number> {
    if (this.#entrypoints === undefined) {
      const maps = this.#sandbox.call(fuel, (instance) => {
        checkAbi(instance);
        return { builtins: readMap(instance, 'builtins'), entrypoints: readMap(instance, 'entrypoints') };
      });
      this.#linkBuiltins(maps.builtins);
      this.#entrypoints = maps.entrypoints;
    }
    return this.#entrypoints;
  }

  #linkBuiltins(required: ReadonlyMap<string, number>): void {
    const missing: string[] = [];
    for (const [name, id] of required) {
      const run = this.#available.get(name);
      if (run === undefined) {
        missing.push(name);
      } else {
        this.#builtins.set(id, { name, run });
      }
    }
    if (missing.length > 0) {
      throw new WasmError('builtin-missing', missingMessage(missing.sort()));
    }
  }

  #imports(instance: SandboxInstance): HostImports {
    const builtin: HostFunction = (id: number, _reserved: number, ...operands: number[]) =>
      this.#call(instance, id, operands);
    return {
      env: {
        opa_abort: (address: number): void => {
          throw new WasmError('trap', `the policy aborted: ${readLine(instance, address, ABORT_TEXT_BYTES)}`);
        },
        opa_println: (address: number): void =>
          this.#evaluation?.log(readLine(instance, address, LOG_LINE_LIMIT_BYTES)),
        opa_builtin0: builtin,
        opa_builtin1: builtin,
        opa_builtin2: builtin,
        opa_builtin3: builtin,
        opa_builtin4: builtin,
      },
    };
  }

  /** Runs a builtin on values in guest memory and returns the address of its result; 0 means undefined. */
  #call(instance: SandboxInstance, id: number, addresses: readonly number[]): number {
    const builtin = this.#builtins.get(id);
    if (builtin === undefined || this.#evaluation === undefined) {
      throw new WasmError('trap', `the policy called a builtin that it does not declare: number ${id}`);
    }
    instance.chargeFuel(FUEL_PER_CALL);
    const operands = addresses.map((address) => readValue(instance, address));
    let result: RegoValue | undefined;
    try {
      result = builtin.run(operands, this.#evaluation.context);
    } catch (error) {
      if (!(error instanceof BuiltinError)) {
        throw error;
      }
    }
    return result === undefined ? 0 : writeValue(instance, result);
  }
}

function checkExports({ shape }: CompiledModule): void {
  const missing = REQUIRED_EXPORTS.filter((name) => !shape.functionExports.includes(name));
  if (missing.length > 0 || !shape.hasMemory) {
    throw new WasmError(
      'export-missing',
      `the module is not a Rego policy: expected a memory and OPA's exported functions, got a module without ` +
        `${missing.join(', ') || 'memory'}; check the execution mode, and build it with opa build -t wasm`,
    );
  }
}

function checkAbi(instance: SandboxInstance): void {
  const major = instance.globalValue('opa_wasm_abi_version');
  if (major !== ABI_VERSION) {
    const got = major === undefined ? 'none (OPA before 0.27)' : String(major);
    throw new WasmError(
      'abi-unsupported',
      `the Rego module's ABI version: expected ${ABI_VERSION}, got ${got}; build it with a current OPA`,
    );
  }
}

function missingMessage(missing: readonly string[]): string {
  const network = missing.filter((name) => NETWORK_BUILTINS.has(name));
  const hint =
    network.length === 0
      ? 'docs/rego-builtins.md lists those that are'
      : `${network.join(' and ')} will not be: policies have no network but the host capabilities that their definition grants`;
  return `the Rego module needs builtins that are not available: ${missing.join(', ')}; ${hint}`;
}

/** The JSON map from names to ids that the exports `builtins` and `entrypoints` return. */
function readMap(instance: SandboxInstance, name: string): ReadonlyMap<string, number> {
  const address = Number(instance.func('opa_json_dump')(Number(instance.func(name)())));
  const map: unknown = parseJson(readText(instance, address, MAP_TEXT_BYTES));
  const entries = typeof map === 'object' && map !== null ? Object.entries(map) : [];
  if (!entries.every(([, id]) => Number.isInteger(id))) {
    throw new WasmError('guest-error', `the Rego module's ${name}: expected numbers by name`);
  }
  return new Map(entries);
}

function parseDocument(instance: SandboxInstance, name: string, json: Uint8Array | string): number {
  const value = parseInGuest(instance, 'opa_json_parse', json);
  if (value === 0) {
    throw new WasmError(
      'guest-error',
      `the policy cannot parse the document ${name} (${json.length} bytes): expected valid JSON`,
    );
  }
  return value;
}

/** Reads an operand. The guest's own code serializes it, because the guest's memory is not trusted. */
function readValue(instance: SandboxInstance, address: number): RegoValue {
  const text = Number(instance.func('opa_value_dump')(address));
  const length = lengthUpToNul(instance, text);
  instance.chargeFuel(length * FUEL_PER_BYTE);
  const value = parseOperand(instance.readString(text, length));
  free(instance, text);
  return value;
}

function parseOperand(text: string): RegoValue {
  try {
    return parseRegoText(text);
  } catch (error) {
    if (error instanceof BuiltinError) {
      throw new WasmError(
        'guest-error',
        `the policy passed a builtin an operand that is not a value: ${error.message}`,
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}

function writeValue(instance: SandboxInstance, value: RegoValue): number {
  const text = regoText(value, (chars) => instance.chargeFuel(FUEL_PER_TOKEN + chars * FUEL_PER_BYTE));
  const address = parseInGuest(instance, 'opa_value_parse', text);
  if (address === 0) {
    throw new WasmError('guest-error', 'the policy cannot parse the result of a builtin');
  }
  return address;
}

function parseInGuest(
  instance: SandboxInstance,
  parser: 'opa_json_parse' | 'opa_value_parse',
  text: Uint8Array | string,
): number {
  const length = Buffer.byteLength(text);
  instance.chargeFuel(length / COPIED_BYTES_PER_FUEL);
  const address = Number(instance.func('opa_malloc')(length));
  if (typeof text === 'string') {
    instance.writeString(address, text, length);
  } else {
    instance.write(address, text);
  }
  const value = Number(instance.func(parser)(address, length));
  free(instance, address);
  return value;
}

/**
 * The guest copies values while it parses them, so the text can be freed: a policy that calls builtins in a loop needs
 * the memory.
 */
function free(instance: SandboxInstance, address: number): void {
  if (instance.has('opa_free')) {
    instance.func('opa_free')(address);
  }
}

/** Number of bytes before the next NUL. */
function lengthUpToNul(instance: SandboxInstance, address: number): number {
  const length = instance.view(address, instance.memoryBytes - (address >>> 0)).indexOf(0);
  if (address === 0 || length === -1) {
    throw new WasmError('bad-pointer', `the guest passed a string without a terminating NUL: address ${address}`);
  }
  return length;
}

function readText(instance: SandboxInstance, address: number, maxBytes: number): string {
  const length = lengthUpToNul(instance, address);
  if (length > maxBytes) {
    throw new WasmError(
      'answer-too-large',
      `the guest's answer is too large: expected at most ${maxBytes} bytes, got ${length}`,
    );
  }
  instance.chargeFuel(length / COPIED_BYTES_PER_FUEL);
  return instance.readString(address, length);
}

/** Reads a message and truncates it to `maxBytes`. */
function readLine(instance: SandboxInstance, address: number, maxBytes: number): string {
  return instance.readString(address, Math.min(lengthUpToNul(instance, address), maxBytes));
}

/** Limits the log of one evaluation to LOG_LIMIT_BYTES and drops the rest. */
function limitLog(log: (text: string) => void): (text: string) => void {
  let left = LOG_LIMIT_BYTES;
  return (text) => {
    const line = text.slice(0, Math.min(LOG_LINE_LIMIT_BYTES, left));
    left -= line.length;
    if (line !== '') {
      log(line);
    }
  };
}
