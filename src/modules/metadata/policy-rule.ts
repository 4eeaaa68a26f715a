import type { MetadataReader } from './field-reader.ts';

/** The requests that a policy is meant for, as in the `rules` of a webhook configuration. */
export interface MetadataRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly operations: readonly PolicyOperation[];
}

type PolicyOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT' | '*';

const OPERATIONS: readonly PolicyOperation[] = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*'];

/** Reads a rule and checks its wildcards as API servers do. @throws ModuleError `metadata-invalid` */
export function readRule(rule: MetadataReader): MetadataRule {
  return {
    apiGroups: requireLoneWildcard(rule.field('apiGroups'), rule.field('apiGroups').nonEmptyStrings()),
    apiVersions: requireLoneWildcard(
      rule.field('apiVersions'),
      rule.field('apiVersions').nonEmptyStrings({ allowEmpty: false }),
    ),
    resources: readResources(rule.field('resources')),
    operations: requireLoneWildcard(
      rule.field('operations'),
      rule.field('operations').nonEmptyList((operation) => operation.oneOf(OPERATIONS)),
    ),
  };
}

function requireLoneWildcard<T extends string>(field: MetadataReader, values: readonly T[]): readonly T[] {
  if (values.length > 1 && values.some((value) => value === '*')) {
    throw field.error('"*" stands for all: expected no other value beside it');
  }
  return values;
}

function readResources(field: MetadataReader): readonly string[] {
  const resources = field.nonEmptyStrings({ allowEmpty: false });
  if (resources.length > 1 && resources.includes('*/*')) {
    throw field.error('"*/*" stands for everything: expected no other resource beside it');
  }
  if (resources.includes('*') && resources.some((resource) => resource !== '*' && !resource.includes('/'))) {
    throw field.error('"*" stands for all resources: expected only subresources beside it');
  }
  const pairs = resources.filter((resource) => resource.includes('/')).map(split);
  // As in API servers, a wildcard covers only later entries: "pods/exec" may come before "pods/*", not after it.
  for (const [index, [resource, subresource]] of pairs.entries()) {
    const later = pairs.slice(index + 1);
    if (subresource === '*' && later.some(([other]) => other === resource)) {
      throw field.error(`"${resource}/*" stands for all subresources of ${resource}: expected none of them after it`);
    }
    if (resource === '*' && later.some(([, other]) => other === subresource)) {
      throw field.error(
        `"*/${subresource}" stands for ${subresource} of all resources: expected none of them after it`,
      );
    }
  }
  return resources;
}

/** Splits `pods/exec`. */
function split(resource: string): [resource: string, subresource: string] {
  const slash = resource.indexOf('/');
  return [resource.slice(0, slash), resource.slice(slash + 1)];
}
