import type { PolicyCode } from '../../modules/index.ts';
import { createOpaGuest, WapcGuest, WasiCommand, WasmError } from '../../wasm/index.ts';
import type { CallContext, InstanceShare, OpaGuest } from '../../wasm/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { createBuiltinGuest } from './builtin-guest.ts';
import { EngineError } from '../values/errors.ts';
import { createManifestsGuest } from './kubernetes-policy-guest.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import {
  parseGatekeeperVerdict,
  parseGuestVerdict,
  parseOpaVerdict,
  parseSettingsVerdict,
} from '../verdict/guest-verdict.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';

/** The waPC protocol that this engine supports; the answer of `protocol_version`. */
const PROTOCOL_VERSION = 'v1';
/** Rego modules of policies are built with a single entrypoint. */
const REGO_ENTRYPOINT = 0;
/** Guests of Kubewarden's WASI mode read the arguments after the program name. */
const WASI_PROGRAM = 'policy.wasm';

/**
 * A guest for a policy's code, which starts with its first call. Throws WasmError when a module lacks what its execution
 * mode needs.
 * @param share of the thread's memory for instances. Default: no limit
 */
export function createGuest(code: PolicyCode, share?: InstanceShare): PolicyGuest {
  switch (code.mode) {
    case 'kubewarden-wapc':
      return new WapcPolicyGuest(new WapcGuest(code.compiled, share));
    case 'wasi':
      return new WasiPolicyGuest(new WasiCommand(code.compiled, share));
    case 'opa':
      return new OpaPolicyGuest(createOpaGuest(code.compiled, share));
    case 'gatekeeper':
      return new GatekeeperPolicyGuest(createOpaGuest(code.compiled, share));
    case 'builtin':
      return createBuiltinGuest(code.name);
    case 'manifests':
      return createManifestsGuest(code.manifests, code);
    default:
      return code satisfies never;
  }
}

class WapcPolicyGuest implements PolicyGuest {
  readonly mode = 'kubewarden-wapc';
  readonly #guest: WapcGuest;
  #isChecked = false;

  constructor(guest: WapcGuest) {
    this.#guest = guest;
  }

  start(): void {
    this.#guest.start();
  }

  validate(input: GuestInput, context: CallContext): GuestVerdict {
    return parseGuestVerdict(guarded(() => this.#guest.call('validate', validatePayload(input), context)));
  }

  validateSettings(settingsJson: string, context: CallContext): SettingsVerdict {
    try {
      return parseSettingsVerdict(guarded(() => this.#guest.call('validate_settings', settingsJson, context)));
    } catch (error) {
      // Policies of Kubewarden's Rust SDK answer with an error where the settings have another shape.
      if (error instanceof EngineError && error.cause instanceof WasmError && error.cause.code === 'guest-error') {
        return { valid: false, message: error.message };
      }
      throw error;
    }
  }

  checkProtocol(context: CallContext): void {
    if (this.#isChecked) {
      return;
    }
    const answer = Buffer.from(guarded(() => this.#guest.call('protocol_version', '', context)))
      .toString()
      .trim();
    if (answer !== JSON.stringify(PROTOCOL_VERSION)) {
      const got = answer.length > 64 ? `${answer.slice(0, 64)}…` : answer;
      throw new EngineError(
        'protocol-unsupported',
        `the module speaks another protocol: expected "${PROTOCOL_VERSION}", got ${got || 'nothing'}. Build it with a current SDK, or set its executionMode.`,
      );
    }
    this.#isChecked = true;
  }
}

class WasiPolicyGuest implements PolicyGuest {
  readonly mode = 'wasi';
  readonly #command: WasiCommand;

  constructor(command: WasiCommand) {
    this.#command = command;
  }

  start(): void {
    this.#command.start();
  }

  validate(input: GuestInput, context: CallContext): GuestVerdict {
    return parseGuestVerdict(this.#run('validate', validatePayload(input), context));
  }

  validateSettings(settingsJson: string, context: CallContext): SettingsVerdict {
    return parseSettingsVerdict(this.#run('validate-settings', settingsJson, context));
  }

  checkProtocol(): void {}

  #run(operation: string, stdin: Uint8Array | string, context: CallContext): Uint8Array {
    const { stdout, exitCode } = guarded(() => this.#command.run([WASI_PROGRAM, operation], stdin, context));
    if (exitCode !== 0) {
      throw new EngineError('guest-error', `the policy exited with code ${exitCode} instead of 0: see its log`);
    }
    return stdout;
  }
}

abstract class RegoPolicyGuest implements PolicyGuest {
  abstract readonly mode: 'opa' | 'gatekeeper';
  readonly #guest: OpaGuest;

  constructor(guest: OpaGuest) {
    this.#guest = guest;
  }

  abstract validate(input: GuestInput, context: CallContext): GuestVerdict;

  start(): void {
    this.#guest.start();
  }

  validateSettings(): SettingsVerdict {
    return { valid: true };
  }

  checkProtocol(): void {}

  /** The answer of the entrypoint to an input, both as JSON. */
  protected answer(input: Buffer, data: string, context: CallContext): string {
    return guarded(() => this.#guest.evaluate(REGO_ENTRYPOINT, input, data, context));
  }
}

class OpaPolicyGuest extends RegoPolicyGuest {
  readonly mode = 'opa';

  validate(input: GuestInput, context: CallContext): GuestVerdict {
    const review = document('{"request":', input.requestJson, '}');
    return parseOpaVerdict(this.answer(review, opaData(input), context));
  }
}

class GatekeeperPolicyGuest extends RegoPolicyGuest {
  readonly mode = 'gatekeeper';

  validate(input: GuestInput, context: CallContext): GuestVerdict {
    if (input.isRaw) {
      throw new EngineError('guest-error', 'Gatekeeper does not support raw validation requests');
    }
    const { requestJson, settingsJson, inventoryJson } = input;
    const data = inventoryJson === undefined ? '{}' : `{"inventory":${inventoryJson}}`;
    const review = document(`{"parameters":${settingsJson},"review":`, requestJson, '}');
    return parseGatekeeperVerdict(this.answer(review, data, context));
  }
}

function validatePayload({ requestJson, settingsJson }: GuestInput): Buffer {
  return document('{"request":', requestJson, `,"settings":${settingsJson}}`);
}

/** Embeds the request in a JSON text. */
function document(before: string, requestJson: Buffer, behind: string): Buffer {
  const bytes = Buffer.allocUnsafe(Buffer.byteLength(before) + requestJson.length + Buffer.byteLength(behind));
  const start = bytes.write(before);
  bytes.write(behind, start + requestJson.copy(bytes, start));
  return bytes;
}

/** The settings, with the cluster's objects below `kubernetes`. Settings cannot override that key. */
function opaData({ settingsJson, inventoryJson }: GuestInput): string {
  if (inventoryJson === undefined) {
    return settingsJson;
  }
  const { kubernetes: _dropped, ...settings } = parseJson(settingsJson) as Record<string, unknown>;
  const own = JSON.stringify(settings).slice(1, -1);
  return `{${own === '' ? '' : `${own},`}"kubernetes":${inventoryJson}}`;
}

/** Runs a guest and converts its errors to EngineErrors. */
function guarded<Result>(run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    if (error instanceof WasmError && error.code === 'out-of-fuel') {
      throw new EngineError('guest-timeout', error.message, { cause: error });
    }
    throw new EngineError('guest-error', errorText(error), { cause: error });
  }
}
