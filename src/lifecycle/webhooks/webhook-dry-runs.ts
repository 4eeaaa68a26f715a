// Dry-runs the webhook of one policy before it is merged into a webhook that policies share.
import { createHash } from 'node:crypto';
import { ApiError } from '../../cluster/index.ts';
import { type AdmissionPolicySpec, isOwnBucket, type PolicyMatch } from '../../resources/index.ts';
import type { ConfigurationObjects } from './configuration-objects.ts';
import { bytesOf, configurationName, MAX_CONFIGURATION_BYTES } from './configuration-parts.ts';
import { exemptions, type ExemptionSettings } from './exemptions.ts';
import { MAX_MATCH_CONDITIONS, standaloneConfiguration } from './webhook-configurations.ts';

/** Remembered accepted webhooks, at some 100 bytes each: for three times 3,500 policies. */
const MAX_ACCEPTED = 10_000;

/** A well-formed target for dry runs, never called. */
const PLACEHOLDER_TARGET = { url: 'https://localhost', ca: '' };

/** Bytes of rules and selectors that one policy may add to a shared webhook: some 400 rules. */
const MAX_SHARED_BYTES = 64_000;

export interface WebhookDryRunsOptions extends ExemptionSettings {
  readonly objects: ConfigurationObjects;
}

export class WebhookDryRuns {
  readonly #options: WebhookDryRunsOptions;
  /** Hashes of webhooks that an API server has accepted. */
  readonly #accepted = new Set<string>();

  constructor(options: WebhookDryRunsOptions) {
    this.#options = options;
  }

  /** @throws ApiError; of the kind `refused` also for a limit of ours */
  async run(
    id: string,
    policyServer: string,
    match: PolicyMatch,
    { sideEffects = 'None' }: AdmissionPolicySpec,
    signal: AbortSignal,
  ): Promise<void> {
    const settings = { ...this.#options, policyServer, target: PLACEHOLDER_TARGET };
    const configuration = standaloneConfiguration(id, match, sideEffects, settings);
    const [{ name: _, ...content } = { name: '' }] = configuration.webhooks as { readonly name: string }[];
    const hash = createHash('sha256')
      .update(JSON.stringify([policyServer, match.isMutating, content, isOwnBucket(match.bucket) ? '' : match.bucket]))
      .digest('hex');
    if (this.#accepted.has(hash)) {
      return;
    }
    checkShared(match);
    this.#checkOwn(match, bytesOf(content));
    const name = `${configurationName(policyServer)}.trial-${hash.slice(0, 16)}`;
    try {
      const { metadata } = configuration;
      await this.#options.objects.dryRun({ ...configuration, metadata: { ...metadata, name } }, signal);
    } catch (error) {
      throw error instanceof ApiError
        ? new ApiError(error.code, error.reason, error.message.replaceAll(name, id), error.details, error)
        : error;
    }
    this.#remember(hash);
  }

  /** Limits of a policy's own webhook that an API server cannot check. */
  #checkOwn({ bucket, namespace, rules, matchConditions }: PolicyMatch, bytes: number): void {
    if (!isOwnBucket(bucket)) {
      return;
    }
    // For all namespaces: while two revisions share the webhook, it may need an exemption that neither needs alone.
    const widest = { rules, namespaceSelector: {}, isNamespaced: namespace !== undefined };
    const most = MAX_MATCH_CONDITIONS - exemptions(rules, widest, this.#options).length;
    if (matchConditions.length > most) {
      throw refusal(
        `spec.matchConditions: expected at most ${most} in a webhook of the policy's own, since exemptions use the rest of ${MAX_MATCH_CONDITIONS}, got ${matchConditions.length}: join some of them`,
      );
    }
    if (bytes > MAX_CONFIGURATION_BYTES) {
      throw refusal(
        `the policy's webhook is ${bytes} bytes, expected at most ${MAX_CONFIGURATION_BYTES}: shorten its rules or match conditions`,
      );
    }
  }

  #remember(hash: string): void {
    if (this.#accepted.size >= MAX_ACCEPTED) {
      const [oldest = ''] = this.#accepted;
      this.#accepted.delete(oldest);
    }
    this.#accepted.add(hash);
  }
}

/** Says what an API server says of an object that is beyond a limit of its own. */
function refusal(message: string): ApiError {
  return new ApiError(422, 'Invalid', message);
}

/** Keeps one policy from making a shared webhook too large to store. */
function checkShared({ bucket, rules, namespaceSelector, objectSelector }: PolicyMatch): void {
  const bytes = bytesOf({ rules, namespaceSelector, objectSelector });
  if (!isOwnBucket(bucket) && bytes > MAX_SHARED_BYTES) {
    throw refusal(
      `the policy's rules and selectors are ${bytes} bytes, expected at most ${MAX_SHARED_BYTES}: shorten them, or split the policy`,
    );
  }
}
