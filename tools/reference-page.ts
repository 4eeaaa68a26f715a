import { apiVersionOf } from '../src/resources/index.ts';
import type { OwnKind, Schema } from '../src/resources/index.ts';

const WRITTEN = '<!-- Written by tools/crds.ts from src/resources. -->';

/** The page of a kind: an example, every field, the status, and what `kubectl get` shows. */
export function referencePage(kind: OwnKind, example: string): string {
  const { declaration, resource, namespaced } = kind;
  const names = [resource, ...declaration.shortNames].map((name) => `\`${name}\``).join(', ');
  const limit = declaration.name?.maxLength;
  return [
    WRITTEN,
    `# ${kind.kind}`,
    '',
    declaration.description,
    '',
    `\`${apiVersionOf(kind)}\`, ${namespaced ? 'namespaced' : 'cluster-scoped'}; \`kubectl get\` knows it as ${names}.`,
    ...(limit === undefined ? [] : ['', `Its name has at most ${limit} characters.`]),
    '',
    '## Example',
    '',
    '```yaml',
    example.trimEnd(),
    '```',
    '',
    '## Spec',
    '',
    ...section('spec', declaration.spec),
    '## Status',
    '',
    ...section('status', declaration.status),
    '## Columns',
    '',
    '| column | shows | |',
    '|---|---|---|',
    ...declaration.columns.map(
      ({ name, jsonPath, priority = 0 }) =>
        `| ${name} | \`${cell(jsonPath)}\` | ${priority === 0 ? '' : 'with `-o wide`'} |`,
    ),
    '',
  ].join('\n');
}

/** The page with links to all others. */
export function referenceIndex(kinds: readonly OwnKind[]): string {
  return [
    WRITTEN,
    '# Kinds',
    '',
    'Every kind that the product brings along, field by field. The CustomResourceDefinitions are in [deploy/crds](../../deploy/crds).',
    '',
    '| kind | short | what it is |',
    '|---|---|---|',
    ...kinds.map(
      ({ kind, declaration }) =>
        `| [${kind}](${kind.toLowerCase()}.md) | ${declaration.shortNames.map((name) => `\`${name}\``).join(', ')} | ${cell(declaration.description)} |`,
    ),
    '',
  ].join('\n');
}

function section(path: string, schema: Schema): readonly string[] {
  const rules = rulesBelow(path, schema);
  return [
    schema.description ?? '',
    '',
    '| field | type | default | |',
    '|---|---|---|---|',
    ...rows(path, schema),
    '',
    ...(rules.length === 0 ? [] : ['Rules:', '', ...rules, '']),
  ];
}

function rows(path: string, schema: Schema): readonly string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = `${path}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    const given =
      field.default === undefined ? (isRequired ? '**required**' : '') : `\`${JSON.stringify(field.default)}\``;
    const text = [field.description ?? '', limits(field)].filter((part) => part !== '').join(' ');
    return [`| \`${at}\` | ${typeText(field)} | ${given} | ${cell(text)} |`, ...nestedRows(at, field)];
  });
}

function nestedRows(path: string, field: Schema): readonly string[] {
  if (field.items !== undefined) {
    return rows(`${path}[]`, field.items);
  }
  return typeof field.additionalProperties === 'object'
    ? rows(`${path}.*`, field.additionalProperties)
    : rows(path, field);
}

function typeText(schema: Schema): string {
  const nullable = schema.nullable === true ? ' or null' : '';
  if (schema['x-kubernetes-int-or-string'] === true) {
    return `integer or string${nullable}`;
  }
  if (schema.items !== undefined) {
    return `list of ${typeText(schema.items)}${nullable}`;
  }
  if (typeof schema.additionalProperties === 'object') {
    return `map of ${typeText(schema.additionalProperties)}${nullable}`;
  }
  return `${schema.format === 'date-time' ? 'time' : (schema.type ?? 'any')}${nullable}`;
}

/** The constraints of a schema besides its type. */
function limits(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, minProperties, maxProperties, pattern } = schema;
  const values = schema.enum?.map((value) => `\`${String(value)}\``).join(', ');
  const keys = schema['x-kubernetes-list-map-keys'];
  const parts = [
    values === undefined ? undefined : `One of ${values}.`,
    range(minimum, maximum, ''),
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' elements'),
    range(minProperties, maxProperties, ' entries'),
    pattern === undefined ? undefined : `Matches \`${pattern}\`.`,
    schema.items === undefined || limits(schema.items) === '' ? undefined : `Each: ${limits(schema.items)}`,
    keys === undefined ? undefined : `Unique by ${keys.map((key) => `\`${key}\``).join(', ')}.`,
  ];
  return parts.filter((part) => part !== undefined).join(' ');
}

function range(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (least === undefined && most === undefined) {
    return undefined;
  }
  if (least === 1 && most === undefined && unit !== '') {
    return 'Not empty.';
  }
  if (least === undefined) {
    return `At most ${most}${unit}.`;
  }
  return most === undefined ? `At least ${least}${unit}.` : `${least} to ${most}${unit}.`;
}

/** The validation rules of a schema and of its fields. */
function rulesBelow(path: string, schema: Schema): readonly string[] {
  const own = (schema['x-kubernetes-validations'] ?? []).map(
    ({ rule, message }) => `- \`${path}\`: ${message ?? rule}`,
  );
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    rulesBelow(`${path}.${name}`, field),
  );
  const items = schema.items === undefined ? [] : rulesBelow(`${path}[]`, schema.items);
  const entries =
    typeof schema.additionalProperties === 'object' ? rulesBelow(`${path}.*`, schema.additionalProperties) : [];
  return [...own, ...below, ...items, ...entries];
}

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`);
}
