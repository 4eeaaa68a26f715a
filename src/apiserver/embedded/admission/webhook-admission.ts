import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../../../cluster/index.ts';
import { apiVersionOf } from '../../../resources/index.ts';
import type { GroupVersionKind, JsonObject, KubernetesObject, MutableObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import type { AdmissionChain, AdmissionAttributes, Authorizer, ClusterState } from '../request/request.ts';
import { errorText } from '../../../values/index.ts';
import { admissionReview, readResponse, reviewVersion } from './admission-review.ts';
import type { Invocation, ReviewResponse, ReviewedObjects } from './admission-review.ts';
import { attributesOf, isExempt, renamed } from './attributes.ts';
import type { RequestAttributes } from './attributes.ts';
import { MutationRound } from './mutation-round.ts';
import { reviewJson } from './review-json.ts';
import { WarningLimit } from './warning-limit.ts';
import { WebhookClient, type WebhookIdentity } from './webhook-client.ts';
import { WebhookConditions } from './webhook-conditions.ts';
import { deniedError, dryRunUnsupported, internalError, WebhookCallError } from './webhook-error.ts';
import { WebhookMatcher } from './webhook-matcher.ts';
import { applyPatch, parsePatch } from './webhook-patch.ts';
import { endpointOf } from './webhook-target.ts';
import type { ServiceResolver } from './webhook-target.ts';
import { webhooksOf } from './webhook.ts';
import type { ConfiguredWebhook } from './webhook.ts';

export interface WebhookAdmissionOptions {
  readonly state: ClusterState;
  /** The authorizer of match conditions. */
  readonly authorizer: Authorizer;
  /** All served kinds in all versions. Returns the same array until a kind changes. */
  readonly definitions: () => readonly ResourceDefinition[];
  /** Converts an object to another version of its kind. Default: only apiVersion and kind are changed. */
  readonly convert?: (object: KubernetesObject, apiVersion: string, kind: string) => KubernetesObject;
  /** Prunes an object that a webhook has changed, and sets its defaults. Default: nothing. */
  readonly prepare?: (object: MutableObject, definition: ResourceDefinition) => void;
  /** Resolves Services to addresses. Default: their cluster IPs. */
  readonly resolveService?: ServiceResolver;
  /** The client certificate of calls. Default: none. */
  readonly webhookIdentity?: WebhookIdentity;
  /** Called for failures of webhooks whose failurePolicy is Ignore. */
  readonly onIgnoredFailure?: (webhook: string, error: Error) => void;
}

const CONFIGURATIONS = {
  mutating: { group: 'admissionregistration.k8s.io', resource: 'mutatingwebhookconfigurations' },
  validating: { group: 'admissionregistration.k8s.io', resource: 'validatingwebhookconfigurations' },
} as const;

/** The webhooks of all configurations of a kind, at a revision. */
interface Configured {
  readonly revision: number;
  readonly webhooks: readonly ConfiguredWebhook[];
}

/**
 * Calls the webhooks of webhook configurations as an API server does
 * (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/).
 */
export class WebhookAdmission implements AdmissionChain {
  readonly #options: WebhookAdmissionOptions;
  readonly #matcher: WebhookMatcher;
  readonly #client: WebhookClient;
  readonly #configured = new Map<ConfiguredWebhook['kind'], Configured>();

  constructor(options: WebhookAdmissionOptions) {
    this.#options = options;
    this.#client = new WebhookClient(options.webhookIdentity);
    this.#matcher = new WebhookMatcher({
      state: options.state,
      definitions: options.definitions,
      conditions: new WebhookConditions(options.authorizer),
      inVersion: (object, kind) => this.#inVersion(object, kind),
    });
  }

  /** Closes the connections to webhooks. */
  close(): void {
    this.#client.close();
  }

  async mutate(
    request: AdmissionAttributes,
    onWarning: (text: string) => void,
    signal?: AbortSignal,
  ): Promise<KubernetesObject | null> {
    const webhooks = this.#webhooks('mutating');
    if (webhooks.length === 0 || isExempt(attributesOf(request))) {
      return request.object;
    }
    const round = new MutationRound(request);
    const warnings = new WarningLimit(onWarning);
    await this.#mutateOnce(webhooks, round, warnings, signal);
    if (round.hasChanged) {
      round.startSecondRound();
      await this.#mutateOnce(webhooks, round, warnings, signal);
    }
    return inNamespace(round.object, request);
  }

  async validate(request: AdmissionAttributes, onWarning: (text: string) => void, signal?: AbortSignal): Promise<void> {
    const webhooks = this.#webhooks('validating');
    const attributes = attributesOf(request);
    if (webhooks.length === 0 || isExempt(attributes)) {
      return;
    }
    const invocations = webhooks
      .map((webhook) => this.#matcher.invocationOf(webhook, attributes))
      .filter((invocation) => invocation !== undefined);
    const limit = new WarningLimit(onWarning);
    const results = await Promise.allSettled(
      invocations.map(async (invocation) => {
        const response = await this.#callOrIgnore(invocation, attributes, signal);
        this.#checkResponse(invocation, response, limit);
      }),
    );
    const refused = results.find((result) => result.status === 'rejected');
    if (refused !== undefined) {
      throw refused.reason;
    }
  }

  #webhooks(kind: ConfiguredWebhook['kind']): readonly ConfiguredWebhook[] {
    const { state } = this.#options;
    const type = CONFIGURATIONS[kind];
    const revision = state.revisionOf(type);
    const known = this.#configured.get(kind);
    if (known?.revision === revision) {
      return known.webhooks;
    }
    const webhooks = webhooksOf(kind, state.list(type));
    this.#configured.set(kind, { revision, webhooks });
    // Some webhooks may be removed, and need no connection any more.
    this.#client.closeIdle();
    return webhooks;
  }

  /** Calls mutating webhooks in order. Each gets the object as the previous one changed it. */
  async #mutateOnce(
    webhooks: readonly ConfiguredWebhook[],
    round: MutationRound,
    warnings: WarningLimit,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (const webhook of webhooks) {
      // Checked before each call, because earlier calls of this round may have made reinvocation necessary.
      if (!round.mayCall(webhook)) {
        continue;
      }
      const attributes = attributesOf({ ...round.request, object: round.object });
      const invocation = this.#matcher.invocationOf(webhook, attributes);
      if (invocation === undefined) {
        continue;
      }
      const response = await this.#callOrIgnore(invocation, attributes, signal, (allowed) => {
        const changed = this.#patched(invocation, allowed, round.object);
        if (changed !== undefined) {
          round.change(changed);
        }
      });
      round.called(webhook);
      this.#checkResponse(invocation, response, warnings);
    }
  }

  /** Reports warnings. Throws ApiError when the webhook denied the request. */
  #checkResponse({ webhook }: Invocation, response: ReviewResponse | undefined, warnings: WarningLimit): void {
    for (const text of response?.warnings ?? []) {
      warnings.add(text);
    }
    if (response !== undefined && !response.isAllowed) {
      throw deniedError(webhook.name, response.status);
    }
  }

  /** Calls a webhook. Undefined when the call or `use` fails and the failurePolicy is Ignore. */
  async #callOrIgnore(
    invocation: Invocation,
    attributes: RequestAttributes,
    signal: AbortSignal | undefined,
    use?: (response: ReviewResponse) => void,
  ): Promise<ReviewResponse | undefined> {
    const { webhook } = invocation;
    if (attributes.request.dryRun && !webhook.supportsDryRun) {
      throw dryRunUnsupported(webhook.name);
    }
    try {
      const response = await this.#call(invocation, attributes, signal);
      if (response.isAllowed) {
        use?.(response);
      }
      return response;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof WebhookCallError)) {
        throw error;
      }
      if (webhook.ignoresFailures) {
        this.#options.onIgnoredFailure?.(webhook.name, error);
        return undefined;
      }
      throw internalError(error.message, error);
    }
  }

  async #call(
    invocation: Invocation,
    attributes: RequestAttributes,
    signal: AbortSignal | undefined,
  ): Promise<ReviewResponse> {
    const { webhook } = invocation;
    const version = reviewVersion(webhook);
    if (version === undefined) {
      const why = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)';
      throw new WebhookCallError(webhook.name, `could not create admission objects: ${why}`);
    }
    const uid = randomUUID();
    const objects = this.#objects(attributes.request, invocation.kind);
    const body = JSON.stringify(admissionReview(uid, version, attributes, invocation, objects));
    const endpoint = inCall(webhook, 'could not get REST client', () =>
      endpointOf(webhook.target, this.#options.state, this.#options.resolveService),
    );
    const { timeoutSeconds, target } = webhook;
    let review: JsonObject;
    try {
      review = reviewJson(
        await this.#client.post({ endpoint, caBundle: target.caBundle, body, timeoutSeconds, signal }),
      );
    } catch (error) {
      throw new WebhookCallError(webhook.name, `failed to call webhook: ${errorText(error)}`, error);
    }
    return inCall(webhook, 'received invalid webhook response', () => readResponse(webhook.kind, version, uid, review));
  }

  #objects({ object, oldObject }: AdmissionAttributes, kind: GroupVersionKind): ReviewedObjects {
    return { object: this.#inVersion(object, kind), oldObject: this.#inVersion(oldObject, kind) };
  }

  #inVersion(object: KubernetesObject | null, kind: GroupVersionKind): KubernetesObject | null {
    if (object === null) {
      return null;
    }
    const { convert } = this.#options;
    const apiVersion = apiVersionOf(kind);
    return convert === undefined || object.apiVersion === apiVersion
      ? renamed(object, kind)
      : convert(object, apiVersion, kind.kind);
  }

  /** The patched object; undefined without a change. */
  #patched(
    { webhook, kind, resource }: Invocation,
    { patch, patchType }: ReviewResponse,
    object: KubernetesObject | null,
  ): KubernetesObject | undefined {
    if (patch === undefined) {
      return undefined;
    }
    const operations = inCall(webhook, 'received undecodable patch in webhook response', () => parsePatch(patch));
    if (operations.length === 0) {
      return undefined;
    }
    if (object === null) {
      const what = `admission webhook "${webhook.name}" attempted to modify the object`;
      throw internalError(`${what}, which is not supported for this operation`);
    }
    if (patchType !== 'JSONPatch') {
      throw new WebhookCallError(webhook.name, `unsupported patch type "${patchType}"`);
    }
    const before = this.#inVersion(object, kind) ?? object;
    const definition = this.#matcher.definitionOf(resource, kind);
    const after = applyPatch(before, operations, kind, definition);
    if (definition !== undefined) {
      this.#options.prepare?.(after, definition);
    }
    if (isDeepStrictEqual(before, after)) {
      return undefined;
    }
    const { apiVersion, kind: name } = object;
    return this.#options.convert?.(after, apiVersion, name) ?? { ...after, apiVersion, kind: name };
  }
}

/** Sets the namespace of the request if the object has none. Throws ApiError 400 when it has another one. */
function inNamespace(object: KubernetesObject | null, { definition, namespace }: AdmissionAttributes) {
  if (object === null || !definition.namespaced || object.metadata.namespace === namespace) {
    return object;
  }
  if (object.metadata.namespace !== undefined && object.metadata.namespace !== '') {
    throw ApiError.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  return namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } };
}

/** Runs a step whose errors count as failures of the webhook. */
function inCall<T>({ name }: ConfiguredWebhook, what: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new WebhookCallError(name, `${what}: ${errorText(error)}`, error);
  }
}
