import type { CallContext } from '../../wasm/index.ts';
import type { JsonValue } from '../values/json-text.ts';
import type { GuestInput, PolicyGuest } from '../guests/policy-guest.ts';
import { parseGuestVerdict, parseSettingsVerdict } from '../verdict/guest-verdict.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';

/** Input of one call of a scripted guest. */
export interface ScriptedCall {
  readonly request: JsonValue;
  readonly settings: JsonValue;
  readonly input: GuestInput;
  readonly context: CallContext;
}

/** A policy guest whose code is a function of the test. Its answers go through the real parsers. */
export class ScriptedGuest implements PolicyGuest {
  readonly mode: PolicyGuest['mode'];
  calls = 0;
  /** Calls of validateSettings. */
  validations = 0;
  readonly #answer: (call: ScriptedCall) => unknown;
  readonly #settings: (settings: JsonValue, context: CallContext) => unknown;

  constructor(
    answer: (call: ScriptedCall) => unknown,
    options: {
      readonly mode?: PolicyGuest['mode'];
      readonly settings?: (settings: JsonValue, context: CallContext) => unknown;
    } = {},
  ) {
    this.#answer = answer;
    this.#settings = options.settings ?? (() => ({ valid: true }));
    this.mode = options.mode ?? 'kubewarden-wapc';
  }

  validate(input: GuestInput, context: CallContext): GuestVerdict {
    this.calls++;
    const request = JSON.parse(input.requestJson.toString()) as JsonValue;
    const settings = JSON.parse(input.settingsJson) as JsonValue;
    const answer = this.#answer({ request, settings, input, context });
    return parseGuestVerdict(typeof answer === 'string' ? answer : JSON.stringify(answer));
  }

  validateSettings(settingsJson: string, context: CallContext): SettingsVerdict {
    this.validations++;
    return parseSettingsVerdict(JSON.stringify(this.#settings(JSON.parse(settingsJson) as JsonValue, context)));
  }

  start(): void {}

  checkProtocol(): void {}
}
