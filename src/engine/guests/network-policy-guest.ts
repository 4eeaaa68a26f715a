import { EngineError } from '../values/errors.ts';
import { joinedProblems } from '../values/field-problem.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';
import type { CallContext } from '../../wasm/index.ts';
import {
  checkNetworkPolicySupport,
  type DetectedProviders,
  type NetworkPolicySettings,
  parseNetworkPolicySettings,
  readDetectedProviders,
} from '../network-policy/index.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import { SettingsCache } from './settings-cache.ts';
import { parseJson } from '../../values/index.ts';

/** The objects with the providers of a cluster. */
const NETWORK_POLICY_PROVIDERS = { api_version: 'portcullis.dev/v1', kind: 'NetworkPolicyProvider' };

/** `builtin:network-policy-support`: what network providers do with a NetworkPolicy. */
export class NetworkPolicyGuest implements PolicyGuest {
  readonly mode = 'builtin';
  readonly #settings = new SettingsCache(parseNetworkPolicySettings);

  validate({ requestJson, settingsJson }: GuestInput, context: CallContext): GuestVerdict {
    const parsed = this.#settings.get(settingsJson);
    if (parsed.settings === undefined) {
      throw new EngineError('guest-error', `the settings cannot be used: ${joinedProblems(parsed.problems)}`);
    }
    const { settings } = parsed;
    const { instances, catalogue } = this.#detected(settings, context);
    const request = parseJson(requestJson.toString());
    const { warnings, ...verdict } = checkNetworkPolicySupport(request, { ...settings, catalogue }, instances);
    return { ...verdict, auditAnnotations: null, warnings: warnings.length === 0 ? null : warnings };
  }

  validateSettings(settingsJson: string): SettingsVerdict {
    const parsed = this.#settings.get(settingsJson);
    return parsed.settings !== undefined ? { valid: true } : { valid: false, message: joinedProblems(parsed.problems) };
  }

  start(): void {}

  checkProtocol(): void {}

  /** The providers of the cluster, if the settings name none and the policy may read them. */
  #detected({ providers, catalogue }: NetworkPolicySettings, { hostCall }: CallContext): DetectedProviders {
    if (providers !== undefined) {
      return { instances: [], catalogue };
    }
    try {
      return readDetectedProviders(parseJson(answerOf(hostCall)), catalogue);
    } catch {
      // Not granted, not served, or not readable now: the policy then warns that no provider is known.
      return { instances: [], catalogue };
    }
  }
}

function answerOf(hostCall: CallContext['hostCall']): string {
  const payload = Buffer.from(JSON.stringify(NETWORK_POLICY_PROVIDERS));
  return Buffer.from(hostCall('kubewarden', 'kubernetes', 'list_resources_all', payload)).toString();
}
