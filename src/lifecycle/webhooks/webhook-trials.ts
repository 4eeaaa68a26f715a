// What an API server says of one policy alone, before the policy's part goes into a webhook that it shares with others.
import { createHash } from 'node:crypto';
import { ApiError } from '../../cluster/index.ts';
import { type AdmissionPolicySpec, isOwnBucket, type PolicyMatch } from '../../resources/index.ts';
import type { ConfigurationObjects } from './configuration-objects.ts';
import { bytesOf, configurationName, MAX_CONFIGURATION_BYTES } from './configuration-parts.ts';
import { exemptions, type ExemptionSettings } from './exemptions.ts';
import { MAX_MATCH_CONDITIONS, standaloneConfiguration } from './webhook-configurations.ts';

/** How an API server says that it understood a configuration, and will not have it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 422]);

/** What was found good is remembered for as many different policies, at some 100 bytes each: three times 3,500. */
const MAX_REMEMBERED = 10_000;

/** Nobody is asked there: only whether an address is well-formed matters. */
const NOWHERE = { url: 'https://localhost', ca: '' };

/** The API server will not ask as it was told to. */
export class WebhookRefusal extends Error {
  override readonly name = 'WebhookRefusal';
}

/** Bytes that one policy may put into a webhook that it shares: some 400 rules. */
export const MAX_SHARED_BYTES = 64_000;

export interface WebhookTrialsOptions extends ExemptionSettings {
  readonly objects: ConfigurationObjects;
}

export class WebhookTrials {
  readonly #options: WebhookTrialsOptions;
  /** Hashes of what API servers found good. */
  readonly #good = new Set<string>();

  constructor(options: WebhookTrialsOptions) {
    this.#options = options;
  }

  /** @throws WebhookRefusal; ApiError where it could not be found out */
  async attempt(
    id: string,
    policyServer: string,
    match: PolicyMatch,
    { sideEffects = 'None' }: AdmissionPolicySpec,
    signal: AbortSignal,
  ): Promise<void> {
    const settings = { ...this.#options, policyServer, target: NOWHERE };
    const made = standaloneConfiguration(id, match, sideEffects, settings);
    const [{ name: _, ...content } = { name: '' }] = made.webhooks as { readonly name: string }[];
    const hash = createHash('sha256')
      .update(JSON.stringify([policyServer, match.isMutating, content, isOwnBucket(match.bucket) ? '' : match.bucket]))
      .digest('hex');
    if (this.#good.has(hash)) {
      return;
    }
    checkShared(match);
    this.#checkOwn(match, bytesOf(content));
    const trial = `${configurationName(policyServer)}.trial-${hash.slice(0, 16)}`;
    try {
      await this.#options.objects.attempt({ ...made, metadata: { ...made.metadata, name: trial } }, signal);
    } catch (error) {
      if (error instanceof ApiError && REFUSALS.has(error.code)) {
        throw new WebhookRefusal(error.message.replaceAll(trial, id), { cause: error });
      }
      throw error;
    }
    this.#remember(hash);
  }

  /** What only we know of a policy that is to have a webhook for itself. */
  #checkOwn({ bucket, rules, matchConditions }: PolicyMatch, bytes: number): void {
    if (!isOwnBucket(bucket)) {
      return;
    }
    // As if any namespace were asked about: while two revisions share the webhook, more may be than with either.
    const most = MAX_MATCH_CONDITIONS - exemptions(rules, { rules, namespaceSelector: {} }, this.#options).length;
    if (matchConditions.length > most) {
      throw new WebhookRefusal(
        `spec.matchConditions: expected at most ${most} in a webhook of the policy's own, where exemptions take the others of ${MAX_MATCH_CONDITIONS}, got ${matchConditions.length}: join some of them`,
      );
    }
    if (bytes > MAX_CONFIGURATION_BYTES) {
      throw new WebhookRefusal(
        `the policy's webhook is ${bytes} bytes, expected at most ${MAX_CONFIGURATION_BYTES}: shorten its rules or match conditions`,
      );
    }
  }

  #remember(hash: string): void {
    if (this.#good.size >= MAX_REMEMBERED) {
      const [oldest = ''] = this.#good;
      this.#good.delete(oldest);
    }
    this.#good.add(hash);
  }
}

/** One policy must not be the reason why the webhook of all cannot be stored. */
function checkShared({ bucket, rules, namespaceSelector, objectSelector }: PolicyMatch): void {
  const bytes = bytesOf({ rules, namespaceSelector, objectSelector });
  if (!isOwnBucket(bucket) && bytes > MAX_SHARED_BYTES) {
    throw new WebhookRefusal(
      `the policy's rules and selectors are ${bytes} bytes, expected at most ${MAX_SHARED_BYTES}: shorten them, or split the policy`,
    );
  }
}
