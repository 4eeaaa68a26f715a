// Resolves `{{hub … hub}}` of a Policy. On one cluster the hub is this cluster; still, a Policy reads its own namespace only, because
// its author need not have rights to any other.
import {
  GOVERNANCE_ANNOTATIONS,
  GOVERNANCE_GROUP,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  type KubernetesObject,
  LAST_APPLIED_ANNOTATION,
  own,
  type Policy,
  type PolicyTemplate,
  textOf,
} from '../../resources/index.ts';
import { asJson, shortened } from '../../values/index.ts';
import type { ObjectSource } from '../configuration/index.ts';
import {
  hasHubTemplates,
  namespaceGate,
  type NoAnswer,
  resolveHubTemplates,
  type TemplateObjects,
} from '../templates/index.ts';
import { templateObjects } from './asked-objects.ts';
import { NotYetRead } from './object-questions.ts';

/** Maximum length of all resolved templates of a Policy. Characters. Kubernetes stores objects up to 1.5 MiB. */
const MAX_RESOLVED_LENGTH = 1_000_000;
/** Characters of the error in an annotation. */
const MAX_ERROR_LENGTH = 1024;
/** Precision of `now`: otherwise a copy that contains the time would differ on each pass. Milliseconds. */
const CLOCK_STEP_MS = 60_000;

const MANAGED_CLUSTER = { apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster' } as const;

/** A Policy whose templates of the hub are resolved. */
export interface HubTemplateInput {
  readonly root: Policy;
  /** The templates of its copy. */
  readonly templates: readonly PolicyTemplate[];
  readonly clusterName: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A template as it is copied. */
export interface ResolvedTemplate {
  readonly template: PolicyTemplate;
  readonly error: string | undefined;
}

/** The templates of a copy. @throws NotYetRead */
export function resolvedTemplates(input: HubTemplateInput, objects: ObjectSource): readonly ResolvedTemplate[] {
  return withinLength(input.templates, (template) => resolvedTemplate(input, template, objects));
}

/** The templates of a copy that could not be resolved, all for one reason. */
export function unresolvedTemplates(templates: readonly PolicyTemplate[], reason: string): readonly ResolvedTemplate[] {
  return templates.map((template) =>
    hasHubTemplates(template.objectDefinition) ? failed(template, reason) : { template, error: undefined },
  );
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

function resolvedTemplate(
  { root, clusterName, now }: HubTemplateInput,
  template: PolicyTemplate,
  objects: ObjectSource,
): ResolvedTemplate {
  const { objectDefinition } = template;
  if (!hasHubTemplates(objectDefinition)) {
    return { template, error: undefined };
  }
  const refusal = hubTemplateRefusal(objectDefinition, root.spec.hubTemplateOptions?.serviceAccountName);
  if (refusal !== undefined) {
    return failed(template, refusal);
  }
  const labels = clusterLabels(objectDefinition, objects, clusterName);
  if (typeof labels === 'string') {
    return failed(template, labels);
  }
  const { namespace = '' } = root.metadata;
  const result = resolveHubTemplates(objectDefinition, {
    objects: namespacedObjects(objects, clusterName),
    context: {
      ManagedClusterName: clusterName,
      ManagedClusterLabels: labels,
      PolicyMetadata: policyMetadata(root),
    },
    mayRead: namespaceGate(namespace, clusterName),
    defaultNamespace: namespace,
    now: new Date(Math.floor(now / CLOCK_STEP_MS) * CLOCK_STEP_MS),
  });
  switch (result.state) {
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

/** The error of templates of the hub that a copied definition still has. */
export function hubTemplateErrorOf(definition: JsonObject): string | undefined {
  const metadata = own(definition, 'metadata');
  const annotations = isJsonObject(metadata) ? own(metadata, 'annotations') : undefined;
  const error = textOf(isJsonObject(annotations) ? own(annotations, GOVERNANCE_ANNOTATIONS.hubTemplatesError) : '');
  return error !== '' && hasHubTemplates(definition) ? error : undefined;
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

function policyMetadata({ metadata }: Policy): JsonObject {
  const { [LAST_APPLIED_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  const { name = '', namespace = '', labels = {} } = metadata;
  return { name, namespace, labels: { ...labels }, annotations };
}

/** The labels of the ManagedCluster of this cluster, if there is one; or why they cannot be read. */
function clusterLabels(definition: JsonObject, objects: ObjectSource, clusterName: string): JsonObject | string {
  if (!JSON.stringify(definition).includes('ManagedClusterLabels')) {
    return {};
  }
  const { apiVersion, kind } = MANAGED_CLUSTER;
  const answer = templateObjects(objects).get(apiVersion, kind, '', clusterName);
  if (answer.state === 'unreadable') {
    return `cannot read ${kind} ${clusterName}: ${answer.reason}`;
  }
  return answer.state === 'found' ? asJson({ ...(answer.object as unknown as KubernetesObject).metadata.labels }) : {};
}

/** Objects with a namespace, and the ManagedCluster of this cluster. A cluster-scoped object ignores the namespace of a look-up. */
function namespacedObjects(objects: ObjectSource, clusterName: string): TemplateObjects {
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
  const readable = templateObjects(objects);
  return {
    get: (apiVersion, kind, namespace, name) =>
      refusal(apiVersion, kind, name) ?? readable.get(apiVersion, kind, namespace, name),
    list: (apiVersion, kind, namespace, selector) =>
      refusal(apiVersion, kind, '') ?? readable.list(apiVersion, kind, namespace, selector),
  };
}
