// Resolves `{{hub … hub}}` of a Policy for its copy. On one cluster the hub is this cluster; still, a Policy reads its own
// namespace only, because its author need not have rights to any other.
import {
  GOVERNANCE_ANNOTATIONS,
  GOVERNANCE_GROUP,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  keyOf,
  type KubernetesObject,
  LAST_APPLIED_ANNOTATION,
  type ObjectKey,
  own,
  POLICIES,
  type Policy,
  type PolicyTemplate,
  textOf,
} from '../../resources/index.ts';
import { asJson, shortened } from '../../values/index.ts';
import { EvaluationObjects, NotYetRead } from '../enforcement/evaluation-objects.ts';
import type { EvaluationTime } from '../evaluation-time.ts';
import type { EvaluationShare } from '../evaluation-share.ts';
import type { KindMappings } from '../objects/kind-mappings.ts';
import type { MissingKinds } from '../objects/missing-kinds.ts';
import type { ObjectReader } from '../objects/watched-kinds.ts';
import {
  hasHubTemplates,
  namespaceGate,
  type NoAnswer,
  resolveHubTemplates,
  type TemplateObjects,
} from '../templates/index.ts';

/** Maximum length of all resolved templates of a Policy. Characters. Kubernetes stores objects up to 1.5 MiB. */
const MAX_RESOLVED_LENGTH = 1_000_000;
/** Characters of the error in an annotation. */
const MAX_ERROR_LENGTH = 1024;
/** Delay before objects that could not be read are read again. Milliseconds. */
const UNREADABLE_RETRY_MS = 10_000;
/** Precision of `now`: otherwise a copy that contains the time would differ on each pass. Milliseconds. */
const CLOCK_STEP_MS = 60_000;

const MANAGED_CLUSTER = { apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster' } as const;

export interface HubTemplatesOptions {
  readonly clusterName: string;
  readonly mappings: KindMappings;
  /** Reads as the governance account. */
  readonly reader: ObjectReader;
  readonly missing: MissingKinds;
  /** Of all policies that are evaluated in this process. */
  readonly share: EvaluationShare;
}

/** A copy without templates of the hub. */
export interface ResolvedCopy {
  /** Templates that could not be resolved are unchanged, with the error in an annotation. */
  readonly copy: Policy;
  readonly errors: readonly string[];
  /** Set if objects could not be read. */
  readonly retryAfterMs: number | undefined;
}

/** The templates are slow, and have used their share of the time. */
export interface Postponed {
  readonly waitMs: number;
}

/** A template as it is copied. */
interface ResolvedTemplate {
  readonly template: PolicyTemplate;
  readonly error: string | undefined;
}

export class HubTemplates {
  readonly #options: HubTemplatesOptions;

  constructor(options: HubTemplatesOptions) {
    this.#options = options;
  }

  /**
   * Resolves the templates of a copy. Changes of all objects that they look up enqueue the root.
   * @throws ApiError, ClusterError of reads; Stalled
   */
  async resolve(root: Policy, copy: Policy, signal: AbortSignal): Promise<ResolvedCopy | Postponed> {
    const key = keyOf(root);
    const templates = copy.spec['policy-templates'];
    if (isLiteral(root) || !templates.some(({ objectDefinition }) => hasHubTemplates(objectDefinition))) {
      this.forget(key);
      return { copy, errors: [], retryAfterMs: undefined };
    }
    const { mappings, reader, missing, share } = this.#options;
    const spec = { kind: POLICIES.kind, key, generation: root.metadata.generation };
    const waitMs = share.waitMs(spec, Date.now());
    if (waitMs > 0) {
      return { waitMs };
    }
    const objects = new EvaluationObjects({ mappings, reader, namespaces: () => [] });
    const resolved = await share.evaluate(spec, async (time) => {
      const round = (): readonly ResolvedTemplate[] =>
        withinLength(templates, (template) => this.#resolved(root, template, objects, time));
      return await objects.evaluate(() => time.round(round), signal);
    });
    // Before anything is awaited, so that no change is missed.
    reader.use(key, objects.selections);
    missing.set(key, objects.missingGroups);
    return {
      copy: { ...copy, spec: { ...copy.spec, 'policy-templates': resolved.map(({ template }) => template) } },
      errors: resolved.flatMap(({ error }) => error ?? []),
      retryAfterMs: objects.failures.length === 0 ? undefined : UNREADABLE_RETRY_MS,
    };
  }

  /** Ends the watches for a Policy without a copy. */
  forget(key: ObjectKey): void {
    this.#options.reader.use(key, []);
    this.#options.missing.set(key, []);
  }

  #resolved(
    root: Policy,
    template: PolicyTemplate,
    objects: EvaluationObjects,
    time: EvaluationTime,
  ): ResolvedTemplate {
    const { objectDefinition } = template;
    if (!hasHubTemplates(objectDefinition)) {
      return { template, error: undefined };
    }
    const refusal = hubTemplateRefusal(objectDefinition, root.spec.hubTemplateOptions?.serviceAccountName);
    if (refusal !== undefined) {
      return failed(template, refusal);
    }
    const { clusterName } = this.#options;
    const labels = clusterLabels(objectDefinition, objects, clusterName);
    if (typeof labels === 'string') {
      return failed(template, labels);
    }
    const result = time.render(() =>
      resolveHubTemplates(objectDefinition, {
        objects: namespacedObjects(objects, clusterName),
        context: {
          ManagedClusterName: clusterName,
          ManagedClusterLabels: labels,
          PolicyMetadata: policyMetadata(root),
        },
        mayRead: namespaceGate(root.metadata.namespace ?? '', clusterName),
        defaultNamespace: root.metadata.namespace ?? '',
        now: new Date(Math.floor(Date.now() / CLOCK_STEP_MS) * CLOCK_STEP_MS),
      }),
    );
    switch (result.state) {
      case 'exceeded':
        return failed(template, result.message);
      case 'unknown':
        throw new NotYetRead();
      case 'skipped':
        return failed(template, 'skipObject: a template of the hub skips nothing');
      case 'failed':
        return failed(template, result.error.message);
      case 'resolved':
        return isJsonObject(result.value)
          ? { template: { ...template, objectDefinition: result.value }, error: undefined }
          : failed(template, 'the object definition is no object after template resolution');
      default:
        return result satisfies never;
    }
  }
}

/**
 * Why templates of the hub in a definition are not resolved at all.
 * @param serviceAccountName of `spec.hubTemplateOptions`
 */
export function hubTemplateRefusal(definition: JsonObject, serviceAccountName = ''): string | undefined {
  if (serviceAccountName !== '') {
    return 'spec.hubTemplateOptions.serviceAccountName is not supported: whoever may write the Policy would get the rights of the account. Remove it; templates of the hub then read the namespace of the Policy';
  }
  // Values are escaped for the templates of these kinds; other kinds would contain the escapes.
  return groupVersionOf(textOf(own(definition, 'apiVersion'))).group === GOVERNANCE_GROUP
    ? undefined
    : `Templates are restricted to the kinds of ${GOVERNANCE_GROUP}`;
}

/** The error of templates of the hub that a copied definition still has. */
export function hubTemplateErrorOf(definition: JsonObject): string | undefined {
  const metadata = own(definition, 'metadata');
  const annotations = isJsonObject(metadata) ? own(metadata, 'annotations') : undefined;
  const error = textOf(isJsonObject(annotations) ? own(annotations, GOVERNANCE_ANNOTATIONS.hubTemplatesError) : '');
  return error !== '' && hasHubTemplates(definition) ? error : undefined;
}

/** The unchanged template, with the error where upstream puts it. */
function failed(template: PolicyTemplate, message: string): ResolvedTemplate {
  const { objectDefinition } = template;
  const metadata = own(objectDefinition, 'metadata');
  const known = isJsonObject(metadata) ? metadata : {};
  const annotations = own(known, 'annotations');
  const error = shortened(message, MAX_ERROR_LENGTH);
  return {
    template: {
      ...template,
      objectDefinition: {
        ...objectDefinition,
        metadata: {
          ...known,
          annotations: {
            ...(isJsonObject(annotations) ? annotations : {}),
            [GOVERNANCE_ANNOTATIONS.hubTemplatesError]: error,
          },
        },
      },
    },
    error,
  };
}

/** Resolves templates up to the maximum length; the others are errors. */
function withinLength(
  templates: readonly PolicyTemplate[],
  resolve: (template: PolicyTemplate) => ResolvedTemplate,
): readonly ResolvedTemplate[] {
  let length = 0;
  return templates.map((template) => {
    const resolved = resolve(template);
    // A template as the user wrote it always fits.
    length += resolved.template === template ? 0 : JSON.stringify(resolved.template).length;
    return length <= MAX_RESOLVED_LENGTH
      ? resolved
      : failed(template, `the resolved templates of the Policy are longer than ${MAX_RESOLVED_LENGTH} characters`);
  });
}

function isLiteral({ metadata }: Policy): boolean {
  return metadata.annotations?.[GOVERNANCE_ANNOTATIONS.disableTemplates] === 'true';
}

function policyMetadata({ metadata }: Policy): JsonObject {
  const { [LAST_APPLIED_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  const { name = '', namespace = '', labels = {} } = metadata;
  return { name, namespace, labels: { ...labels }, annotations };
}

/** The labels of the ManagedCluster of this cluster, if there is one; or why they cannot be read. */
function clusterLabels(definition: JsonObject, objects: EvaluationObjects, clusterName: string): JsonObject | string {
  if (!JSON.stringify(definition).includes('ManagedClusterLabels')) {
    return {};
  }
  const { apiVersion, kind } = MANAGED_CLUSTER;
  const answer = objects.templates.get(apiVersion, kind, '', clusterName);
  if (answer.state === 'unreadable') {
    return `cannot read ${kind} ${clusterName}: ${answer.reason}`;
  }
  return answer.state === 'found' ? asJson({ ...(answer.object as KubernetesObject).metadata.labels }) : {};
}

/** Objects with a namespace, and the ManagedCluster of this cluster. A cluster-scoped object ignores the namespace of a look-up. */
function namespacedObjects(objects: EvaluationObjects, clusterName: string): TemplateObjects {
  const refusal = (apiVersion: string, kind: string, name: string): NoAnswer | undefined => {
    try {
      const type = objects.kind(apiVersion, kind);
      const isOwnCluster =
        apiVersion === MANAGED_CLUSTER.apiVersion && kind === MANAGED_CLUSTER.kind && name === clusterName;
      return type === undefined || type.namespaced || isOwnCluster
        ? undefined
        : { state: 'unreadable', reason: 'templates of the hub read no cluster-scoped objects' };
    } catch (error) {
      if (error instanceof NotYetRead) {
        return { state: 'unknown' };
      }
      throw error;
    }
  };
  return {
    get: (apiVersion, kind, namespace, name) =>
      refusal(apiVersion, kind, name) ?? objects.templates.get(apiVersion, kind, namespace, name),
    list: (apiVersion, kind, namespace, selector) =>
      refusal(apiVersion, kind, '') ?? objects.templates.list(apiVersion, kind, namespace, selector),
  };
}
