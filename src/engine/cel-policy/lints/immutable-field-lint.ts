// Finds mutations that set immutable fields on updates: API servers refuse every update of an object that has another value, also
// one that only changes a label.
import { type Expression, expressionsOf } from '../../../cel/index.ts';
import type { CompiledMutation, CompiledPolicy } from '../compiled-policy.ts';
import { fieldOfPatch } from '../read-policy.ts';
import { constantText } from './constant-text.ts';
import type { Variables } from './field-chain.ts';
import { findingAt, type LintFinding } from './lint-finding.ts';
import type { MatchedSchema } from './matched-schemas.ts';
import { structsOf } from './structs-of.ts';

interface ImmutableFields {
  readonly fields: readonly string[];
  readonly except?: readonly string[];
}

/** Immutable fields of every object. */
const METADATA = ['/metadata/name', '/metadata/namespace', '/metadata/uid'];

/** Immutable fields that mutations set, without indexes of lists. */
const IMMUTABLE: Readonly<Record<string, ImmutableFields>> = {
  CertificateSigningRequest: { fields: ['/spec'] },
  ClusterRoleBinding: { fields: ['/roleRef'] },
  CSIDriver: { fields: ['/spec/attachRequired', '/spec/volumeLifecycleModes'] },
  CustomResourceDefinition: {
    fields: ['/spec/group', '/spec/scope', '/spec/names/kind', '/spec/names/plural'],
  },
  DaemonSet: { fields: ['/spec/selector'] },
  Deployment: { fields: ['/spec/selector'] },
  EndpointSlice: { fields: ['/addressType'] },
  IngressClass: { fields: ['/spec/controller'] },
  Job: { fields: ['/spec/selector', '/spec/template', '/spec/completionMode', '/spec/podFailurePolicy'] },
  PersistentVolumeClaim: { fields: ['/spec'], except: ['/spec/resources', '/spec/volumeAttributesClassName'] },
  PersistentVolume: {
    fields: ['/spec'],
    except: [
      '/spec/accessModes',
      '/spec/capacity',
      '/spec/claimRef',
      '/spec/mountOptions',
      '/spec/nodeAffinity',
      '/spec/persistentVolumeReclaimPolicy',
      '/spec/storageClassName',
      '/spec/volumeAttributesClassName',
    ],
  },
  Pod: {
    fields: ['/spec'],
    except: [
      '/spec/activeDeadlineSeconds',
      '/spec/containers/image',
      '/spec/initContainers/image',
      '/spec/schedulingGates',
      '/spec/tolerations',
    ],
  },
  PriorityClass: { fields: ['/value', '/preemptionPolicy'] },
  ReplicaSet: { fields: ['/spec/selector'] },
  ResourceClaim: { fields: ['/spec'] },
  RoleBinding: { fields: ['/roleRef'] },
  RuntimeClass: { fields: ['/handler'] },
  Secret: { fields: ['/type'] },
  Service: { fields: ['/spec/clusterIP', '/spec/clusterIPs', '/spec/loadBalancerClass'] },
  StatefulSet: {
    fields: ['/spec'],
    except: [
      '/spec/minReadySeconds',
      '/spec/ordinals',
      '/spec/persistentVolumeClaimRetentionPolicy',
      '/spec/replicas',
      '/spec/revisionHistoryLimit',
      '/spec/template',
      '/spec/updateStrategy',
    ],
  },
  StorageClass: { fields: ['/parameters', '/provisioner', '/reclaimPolicy', '/volumeBindingMode'] },
  VolumeAttributesClass: { fields: ['/driverName', '/parameters'] },
};

/** Stands for kinds whose fields are not known. */
const ANY_KIND = 'object';

/** What limits a mutation to some operations. */
const GUARD = /\b(?:oldObject|operation)\b/u;

/** @param conditions match conditions of the policy's webhook @param root prefix of fields */
export function immutableFieldLint(
  policy: CompiledPolicy,
  matched: readonly MatchedSchema[],
  conditions: readonly string[],
  root: string,
): readonly LintFinding[] {
  const { mutations, variables, matchConditions } = policy;
  const texts = [
    ...conditions,
    ...matchConditions.map(({ text }) => text),
    ...[...variables.values()].map(({ text }) => text),
  ];
  const kinds = matched.flatMap(({ kind = ANY_KIND, isUpdated }) => (isUpdated ? [kind] : []));
  if (kinds.length === 0 || texts.some((text) => GUARD.test(text))) {
    return [];
  }
  return mutations.flatMap((mutation, index) => {
    const { program, patchType, text } = mutation;
    const changes = GUARD.test(text) ? [] : changesOf(mutation, variables);
    const field = `${root}mutations[${index}].${fieldOfPatch(patchType)}.expression`;
    for (const kind of kinds) {
      const change = changes.find((one) => isImmutable(kind, one));
      if (change !== undefined) {
        return [findingAt('immutable-field', field, program, change.node.start, messageOf(kind, change.path))];
      }
    }
    return [];
  });
}

function messageOf(kind: string, path: string): string {
  const article = /^[aeiou]/iu.test(kind) ? 'an' : 'a';
  return `${path} of ${article} ${kind} is immutable: every update of one that has another value is refused, even of its labels. Remove UPDATE from the rules, or add the match condition request.operation == 'CREATE'`;
}

function isImmutable(kind: string, { path, isElement }: Change): boolean {
  const { fields, except = [] } = IMMUTABLE[kind] ?? { fields: [] };
  return (
    [...METADATA, ...fields].some(
      (field) => isWithin(path, field) || (isWithin(field, path) && path !== '/metadata'),
    ) && !except.some((one) => isWithin(path, one) || (!isElement && isWithin(one, path)))
  );
}

function isWithin(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}/`);
}

interface Change {
  readonly node: Expression;
  /** `/spec/containers/image` */
  readonly path: string;
  /** Whether an element is added to the list at the path, and not a field set that may be there. */
  readonly isElement: boolean;
}

/** The fields that a mutation sets, as far as its expression says it. */
function changesOf({ patchType, program }: CompiledMutation, variables: Variables): readonly Change[] {
  const { expression } = program.checked;
  return patchType === 'JSONPatch' ? patchedFields(expression, variables) : appliedFields(expression);
}

function patchedFields(root: Expression, variables: Variables): readonly Change[] {
  return structsOf(root, 'JSONPatch').flatMap((node) => {
    const of = (name: string): ReturnType<typeof constantText> =>
      constantText(node.fields.find((field) => field.name === name)?.value, variables);
    const { text, isWhole } = of('path');
    const segments = text.split('/').slice(1);
    const known = (isWhole ? segments : segments.slice(0, -1)).filter((segment) => !/^(?:-|-?\d+)$/u.test(segment));
    const isChange = of('op').text !== 'test' && (isWhole || known.length > 1);
    return isChange && known.length > 0
      ? [{ node, path: `/${known.join('/')}`, isElement: isWhole && segments.at(-1) === '-' }]
      : [];
  });
}

function appliedFields(root: Expression): readonly Change[] {
  return structsOf(root, 'Object').flatMap((struct) => {
    const path = struct.typeName.split('.').slice(1);
    // The name is the key of most lists of objects. One that is written is that of an element which objects may not have.
    const key = path.length > 1 ? struct.fields.find(({ name }) => name === 'name') : undefined;
    const isElement = key?.value.kind === 'literal';
    const added: readonly Change[] = isElement ? [{ node: struct, path: `/${path.join('/')}`, isElement }] : [];
    return [
      ...added,
      ...struct.fields.flatMap(({ name, value }) => {
        const isParent = [...expressionsOf(value)].some(({ kind }) => kind === 'struct');
        const isChange = name !== key?.name && !isParent;
        return isChange ? [{ node: value, path: `/${[...path, name].join('/')}`, isElement: false }] : [];
      }),
    ];
  });
}
