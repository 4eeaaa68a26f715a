// The `scale` subresource (autoscaling/v1 Scale).
import { ApiError } from '../../../cluster/index.ts';
import { isJsonObject, labelSelector, valueAt } from '../../../resources/index.ts';
import type { JsonObject, KubernetesObject, MutableObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { thaw } from '../store/thaw.ts';

type ScalePaths = NonNullable<ResourceDefinition['scale']>;

export function scaleOf(object: KubernetesObject, paths: ScalePaths): KubernetesObject {
  const { name = '', namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector =
    paths.labelSelectorPath === undefined ? undefined : valueAt(object, ...stepsOf(paths.labelSelectorPath));
  const selectorText = textOfSelector(selector);
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    spec: replicas(valueAt(object, ...stepsOf(paths.specReplicasPath))),
    status: {
      replicas: numberOf(valueAt(object, ...stepsOf(paths.statusReplicasPath))),
      ...(selectorText === '' ? {} : { selector: selectorText }),
    },
  };
}

/** A copy of the object with the replicas of a Scale. */
export function withScale(object: KubernetesObject, paths: ScalePaths, scale: MutableObject): MutableObject {
  const spec = isJsonObject(scale['spec']) ? scale['spec'] : {};
  const wanted = spec['replicas'] ?? 0;
  if (typeof wanted !== 'number' || !Number.isSafeInteger(wanted) || wanted < 0) {
    throw ApiError.invalid({ group: 'autoscaling', kind: 'Scale' }, object.metadata.name ?? '', [
      {
        reason: 'FieldValueInvalid',
        field: 'spec.replicas',
        message: `Invalid value: ${JSON.stringify(wanted)}: must be greater than or equal to 0`,
      },
    ]);
  }
  const copy = thaw(object) as MutableObject;
  const steps = stepsOf(paths.specReplicasPath);
  let parent: JsonObject = copy as JsonObject;
  for (const step of steps.slice(0, -1)) {
    const member = Object.hasOwn(parent, step) ? parent[step] : undefined;
    const child: JsonObject = isJsonObject(member) ? member : {};
    parent[step] = child;
    parent = child;
  }
  parent[steps.at(-1) ?? ''] = wanted;
  const { resourceVersion, uid } = scale.metadata;
  copy.metadata = { ...copy.metadata, resourceVersion, ...(uid === undefined ? {} : { uid }) };
  return copy;
}

function replicas(value: unknown): JsonObject {
  const count = numberOf(value);
  return count === 0 ? {} : { replicas: count };
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** The field names in a path such as `.spec.replicas`. */
function stepsOf(path: string): readonly string[] {
  return path.replace(/^\./u, '').split('.');
}

/** A label selector in the text form of `scale.status.selector`. */
function textOfSelector(selector: unknown): string {
  if (typeof selector === 'string') {
    return selector;
  }
  if (!isJsonObject(selector)) {
    return '';
  }
  // A ReplicationController's selector is a map of labels.
  return labelSelector(
    'matchLabels' in selector || 'matchExpressions' in selector ? selector : { matchLabels: selector },
  ).toString();
}
