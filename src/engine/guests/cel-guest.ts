import type { CallContext } from '../../wasm/index.ts';

import { HostSources, parseSettings, PolicyEnvironments, problemsText } from '../cel-policy/index.ts';
import type { ParsedSettings } from '../cel-policy/index.ts';
import { requestOf } from './cel-request.ts';
import { EngineError } from '../values/errors.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import { SettingsCache } from './settings-cache.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';

/** `builtin:cel`: policies in Kubernetes' expression language, with the semantics of its admission policies. */
export class CelGuest implements PolicyGuest {
  readonly mode = 'builtin';
  readonly #environments = new PolicyEnvironments({ hasWholeRequest: true });
  readonly #settings = new SettingsCache<ParsedSettings>((json) => parseSettings(json, this.#environments));

  validate({ requestJson, settingsJson, isRaw }: GuestInput, context: CallContext): GuestVerdict {
    const { policy, problems } = this.#settings.get(settingsJson);
    if (policy === undefined) {
      throw new EngineError('guest-error', `the settings cannot be used: ${problemsText(problems)}`);
    }
    if (isRaw) {
      throw new EngineError('guest-error', 'builtin:cel does not support raw validation requests');
    }
    return policy.evaluate(requestOf(requestJson), new HostSources(context), context.log);
  }

  validateSettings(settingsJson: string): SettingsVerdict {
    const { policy, problems } = this.#settings.get(settingsJson);
    return policy === undefined ? { valid: false, message: problemsText(problems) } : { valid: true };
  }

  start(): void {}

  checkProtocol(): void {}
}
