import { ApiError } from '../../../cluster/index.ts';
import { ruleMatches, SelectorError } from '../../../resources/index.ts';
import type {
  GroupVersionKind,
  GroupVersionResource,
  KubernetesObject,
  RuleRequest,
  Selector,
} from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { forbiddenError } from '../authorization/forbidden.ts';
import type { ClusterState } from '../request/request.ts';
import type { Invocation } from './admission-review.ts';
import { isNamespaces, kindOf, resourceOf } from './attributes.ts';
import type { RequestAttributes } from './attributes.ts';
import type { WebhookConditions } from './webhook-conditions.ts';
import { internalError } from './webhook-error.ts';
import type { ConfiguredWebhook } from './webhook.ts';

const NAMESPACES = { group: '', resource: 'namespaces' } as const;

/** Groups that serve the same objects, by resource, for the matchPolicy Equivalent. */
const SAME_OBJECTS: ReadonlyMap<string, readonly string[]> = new Map([['events', ['', 'events.k8s.io']]]);

export interface WebhookMatcherOptions {
  readonly state: ClusterState;
  /** Returns the same array until a kind changes. */
  readonly definitions: () => readonly ResourceDefinition[];
  readonly conditions: WebhookConditions;
  readonly inVersion: (object: KubernetesObject | null, kind: GroupVersionKind) => KubernetesObject | null;
}

/** Decides which webhooks match a request, and in which version. */
export class WebhookMatcher {
  readonly #options: WebhookMatcherOptions;
  /** Equivalent definitions by resource, cached until the definitions change. */
  #known: {
    readonly definitions: readonly ResourceDefinition[];
    readonly equivalents: Map<string, readonly ResourceDefinition[]>;
  } = { definitions: [], equivalents: new Map() };

  constructor(options: WebhookMatcherOptions) {
    this.#options = options;
  }

  /**
   * Undefined when the webhook does not match. A missing namespace or a failed condition is an error only if everything else
   * matches.
   * @throws ApiError
   */
  invocationOf(webhook: ConfiguredWebhook, attributes: RequestAttributes): Invocation | undefined {
    const invocation = this.#matchRules(webhook, attributes);
    if (invocation === undefined) {
      return undefined;
    }
    // If one selector does not match, errors of the other one do not matter.
    const results = [
      attempt(() => this.#isNamespaceSelected(webhook, attributes)),
      attempt(() => isObjectSelected(webhook, attributes)),
    ];
    if (results.includes(false)) {
      return undefined;
    }
    for (const result of results) {
      if (result instanceof ApiError) {
        throw result;
      }
    }
    return this.#meetsConditions(webhook, attributes, invocation) ? invocation : undefined;
  }

  /** The definition of a resource, if its kind is the given one. */
  definitionOf(resource: GroupVersionResource, kind: GroupVersionKind): ResourceDefinition | undefined {
    for (const definition of this.#options.definitions()) {
      if (
        definition.resource === resource.resource &&
        definition.group === resource.group &&
        definition.version === resource.version
      ) {
        return definition.kind === kind.kind ? definition : undefined;
      }
    }
    return undefined;
  }

  #matchRules(webhook: ConfiguredWebhook, attributes: RequestAttributes): Invocation | undefined {
    const { kind, resource, subresource, namespace } = attributes;
    const ruleRequest: RuleRequest = { operation: attributes.request.operation, subresource, namespace };
    if (webhook.rules.some((rule) => ruleMatches(rule, ruleRequest, resource))) {
      return { webhook, kind, resource };
    }
    if (!webhook.matchesEquivalents) {
      return undefined;
    }
    const others = this.#equivalents(attributes);
    for (const rule of webhook.rules) {
      const other = others.find((one) => ruleMatches(rule, ruleRequest, resourceOf(one)));
      if (other !== undefined) {
        // The kind of a subresource such as Scale does not depend on the version of its resource.
        const isOwnKind = kind.kind === attributes.request.definition.kind;
        return { webhook, kind: isOwnKind ? kindOf(other) : kind, resource: resourceOf(other) };
      }
    }
    return undefined;
  }

  /** The definitions of the same objects in other versions and groups. */
  #equivalents({ resource }: RequestAttributes): readonly ResourceDefinition[] {
    const definitions = this.#options.definitions();
    if (this.#known.definitions !== definitions) {
      this.#known = { definitions, equivalents: new Map() };
    }
    const key = `${resource.resource}.${resource.version}.${resource.group}`;
    const known = this.#known.equivalents.get(key) ?? equivalentsOf(resource, definitions);
    this.#known.equivalents.set(key, known);
    return known;
  }

  #isNamespaceSelected(
    webhook: ConfiguredWebhook,
    { namespace, resource, subresource, request }: RequestAttributes,
  ): boolean {
    // Cluster-scoped objects always match namespace selectors.
    if (namespace === '' && resource.resource !== NAMESPACES.resource) {
      return true;
    }
    const selector = selectorOf(webhook.namespaceSelector);
    if (selector.isEmpty) {
      return true;
    }
    const isWritten = subresource === '' && (request.operation === 'CREATE' || request.operation === 'UPDATE');
    if (isNamespaces(resource) && isWritten) {
      return selector.matches(request.object?.metadata.labels);
    }
    const found = this.#options.state.get(NAMESPACES, undefined, namespace);
    if (found === undefined) {
      throw ApiError.notFound(NAMESPACES, namespace);
    }
    return selector.matches(found.metadata.labels);
  }

  #meetsConditions(webhook: ConfiguredWebhook, attributes: RequestAttributes, invocation: Invocation): boolean {
    if (webhook.matchConditions.length === 0) {
      return true;
    }
    const { conditions, inVersion } = this.#options;
    const { object, oldObject } = attributes.request;
    const matching = conditions.check(webhook, attributes, invocation, {
      object: inVersion(object, invocation.kind),
      oldObject: inVersion(oldObject, invocation.kind),
    });
    if ('error' in matching) {
      throw forbiddenError(attributes.resource, attributes.name, matching.error);
    }
    return matching.matches;
  }
}

function equivalentsOf(
  { group, version, resource }: GroupVersionResource,
  definitions: readonly ResourceDefinition[],
): readonly ResourceDefinition[] {
  const same = SAME_OBJECTS.get(resource) ?? [];
  const groups = same.includes(group) ? same : [group];
  return definitions.filter(
    (one) =>
      one.resource === resource && groups.includes(one.group) && (one.group !== group || one.version !== version),
  );
}

function isObjectSelected(webhook: ConfiguredWebhook, { request }: RequestAttributes): boolean {
  const selector = selectorOf(webhook.objectSelector);
  return (
    selector.isEmpty ||
    [request.object, request.oldObject].some((one) => one !== null && selector.matches(one.metadata.labels))
  );
}

function selectorOf(selector: Selector | SelectorError): Selector {
  if (selector instanceof SelectorError) {
    throw internalError(selector.message, selector);
  }
  return selector;
}

function attempt(run: () => boolean): boolean | ApiError {
  try {
    return run();
  } catch (error) {
    if (error instanceof ApiError) {
      return error;
    }
    throw error;
  }
}
