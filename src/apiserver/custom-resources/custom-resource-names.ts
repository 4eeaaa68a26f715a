import { quote } from '../../go/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { namesOf } from './custom-resource.ts';
import type { KindNames } from './custom-resource.ts';

/** The accepted names of a CustomResourceDefinition (`status.acceptedNames`, the condition `NamesAccepted`). */
export interface AcceptedNames {
  readonly names: KindNames;
  readonly status: 'True' | 'False';
  readonly reason:
    | 'NoConflicts'
    | 'PluralConflict'
    | 'SingularConflict'
    | 'ShortNamesConflict'
    | 'KindConflict'
    | 'ListKindConflict';
  readonly message: string;
}

/**
 * Resolves name conflicts between CustomResourceDefinitions of a group: a name belongs to the definition that requested it
 * first.
 *
 * @param others the other definitions, whose accepted names are in their status
 */
export function acceptNames(crd: KubernetesObject, others: Iterable<KubernetesObject>): AcceptedNames {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const other of others) {
    if (other.metadata.name !== crd.metadata.name && groupOf(other) === groupOf(crd)) {
      const { plural, singular, shortNames, kind, listKind } = namesOf(other, 'status');
      for (const name of [plural, singular, ...shortNames]) {
        resources.add(name);
      }
      kinds.add(kind).add(listKind);
    }
  }
  const [wanted, current] = [namesOf(crd), namesOf(crd, 'status')];
  let conflict: Pick<AcceptedNames, 'reason' | 'message'> | undefined;
  const pick = (name: 'plural' | 'singular' | 'kind' | 'listKind', taken: ReadonlySet<string>): string => {
    if (wanted[name] === current[name] || !taken.has(wanted[name])) {
      return wanted[name];
    }
    const what = `${name[0]?.toUpperCase()}${name.slice(1)}` as 'Plural' | 'Singular' | 'Kind' | 'ListKind';
    conflict = { reason: `${what}Conflict`, message: inUse(wanted[name]) };
    return current[name];
  };
  const [plural, singular] = [pick('plural', resources), pick('singular', resources)];
  const taken = wanted.shortNames.filter((name) => !current.shortNames.includes(name) && resources.has(name));
  if (taken.length > 0) {
    const texts = taken.map(inUse);
    conflict = { reason: 'ShortNamesConflict', message: texts.length === 1 ? texts.join('') : `[${texts.join(', ')}]` };
  }
  const [kind, listKind] = [pick('kind', kinds), pick('listKind', kinds)];
  const shortNames = taken.length > 0 ? current.shortNames : wanted.shortNames;
  const names: KindNames = { plural, singular, kind, listKind, shortNames, categories: wanted.categories };
  return conflict === undefined
    ? { names, status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
    : { names, status: 'False', ...conflict };
}

function inUse(name: string): string {
  return `${quote(name)} is already in use`;
}

function groupOf(crd: KubernetesObject): unknown {
  return (crd['spec'] as { readonly group?: unknown } | undefined)?.group;
}
