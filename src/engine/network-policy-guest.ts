import { EngineError } from './errors.ts';
import { problemText } from './field-problem.ts';
import type { GuestVerdict, SettingsVerdict } from './guest-verdict.ts';
import { checkNetworkPolicySupport, parseNetworkPolicySettings } from './network-policy/index.ts';
import type { ParsedNetworkPolicySettings } from './network-policy/index.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import { SettingsCache } from './settings-cache.ts';
import { parseJson } from '../values/index.ts';

/** `builtin:network-policy-support`: what network providers do with a NetworkPolicy. */
export class NetworkPolicyGuest implements PolicyGuest {
  readonly mode = 'builtin';
  readonly #settings = new SettingsCache(parseNetworkPolicySettings);

  validate({ requestJson, settingsJson }: GuestInput): GuestVerdict {
    const parsed = this.#settings.get(settingsJson);
    if (parsed.settings === undefined) {
      throw new EngineError('guest-error', `the settings cannot be used: ${problemsText(parsed)}`);
    }
    const { warnings, ...verdict } = checkNetworkPolicySupport(parseJson(requestJson.toString()), parsed.settings);
    return { ...verdict, auditAnnotations: null, warnings: warnings.length === 0 ? null : warnings };
  }

  validateSettings(settingsJson: string): SettingsVerdict {
    const parsed = this.#settings.get(settingsJson);
    return parsed.settings !== undefined ? { valid: true } : { valid: false, message: problemsText(parsed) };
  }

  checkProtocol(): void {}
}

function problemsText({ problems }: Extract<ParsedNetworkPolicySettings, { settings?: undefined }>): string {
  return problems.map(problemText).join('; ');
}
