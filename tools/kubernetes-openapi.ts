// Writes src/resources/kubernetes/openapi.json.br: the OpenAPI v3 schemas of the kinds that the embedded cluster has, as the
// API server of the end-to-end tests publishes them, and what the Go types of k8s.io/api say beyond that. Needs what
// `npm run cluster:build` made, and Go. `--check` writes nothing and fails when the file has other data.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { SERVED_KINDS } from '../src/apiserver/index.ts';
import { startCluster } from '../test/cluster/cluster.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Components = Record<string, Json>;

const file = fileURLToPath(new URL('../src/resources/kubernetes/openapi.json.br', import.meta.url));
const modules = fileURLToPath(new URL('../test/cluster/apiserver', import.meta.url));

/** Types of requests and answers besides the kinds. */
const MORE = [
  'io.k8s.api.authentication.v1.TokenRequest',
  'io.k8s.api.autoscaling.v1.Scale',
  'io.k8s.api.policy.v1.Eviction',
  'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta',
  'io.k8s.apimachinery.pkg.apis.meta.v1.Status',
];

/** Go packages of components, with the prefix of their component names. */
const PACKAGES: readonly (readonly [module: string, folder: string, prefix: string])[] = [
  ['k8s.io/api', '', 'io.k8s.api'],
  ['k8s.io/apimachinery', 'pkg/apis/meta/v1', 'io.k8s.apimachinery.pkg.apis.meta.v1'],
  [
    'k8s.io/apiextensions-apiserver',
    'pkg/apis/apiextensions/v1',
    'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1',
  ],
];

await using cluster = await startCluster();
const all = await publishedComponents();
const components = reachable(all);
const { gitVersion } = await cluster.expect<{ gitVersion: string }>('GET', '/version');
const text = JSON.stringify({
  version: gitVersion,
  components,
  goFacts: goFacts(components),
  tableColumns: await tableColumns(),
});

if (process.argv.includes('--check')) {
  if (brotliDecompressSync(readFileSync(file)).toString() !== text) {
    console.error(
      'openapi.json.br is not what the API server publishes: run `node tools/run.mjs tools/kubernetes-openapi.ts`',
    );
    process.exitCode = 1;
  }
} else {
  const data = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: text.length } });
  writeFileSync(file, data);
  console.log(
    `${Object.keys(components).length} schemas of ${gitVersion}: ${text.length} bytes, ${data.length} compressed`,
  );
}

/** All components that the API server publishes for the groups of our kinds. */
async function publishedComponents(): Promise<Components> {
  const paths = new Set(
    SERVED_KINDS.map(({ group, version }) => (group === '' ? `api/${version}` : `apis/${group}/${version}`)),
  );
  const found: Components = {};
  for (const path of [...paths, 'apis/autoscaling/v1']) {
    const document = await cluster.expect<{ components: { schemas: Components } }>('GET', `/openapi/v3/${path}`);
    Object.assign(found, document.components.schemas);
  }
  return found;
}

/** The columns of kubectl's tables. */
async function tableColumns(): Promise<Record<string, Json>> {
  const columns: Record<string, Json> = {};
  for (const { group, version, kind, resource, verbs } of SERVED_KINDS) {
    if (verbs === undefined) {
      const path = group === '' ? `/api/${version}/${resource}` : `/apis/${group}/${version}/${resource}`;
      const { body } = await cluster.request<{ columnDefinitions: Json }>('GET', `${path}?limit=1`, undefined, {
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      });
      columns[`${group}/${version}/${kind}`] = body.columnDefinitions;
    }
  }
  return columns;
}

/** The components of our kinds and those that they refer to, sorted by name. */
function reachable(published: Components): Components {
  const wanted = new Set(SERVED_KINDS.map(({ group, version, kind }) => `${group}/${version}/${kind}`));
  const queue = [...MORE];
  for (const [name, schema] of Object.entries(published)) {
    const kinds = (schema as { 'x-kubernetes-group-version-kind'?: readonly Record<string, string>[] })[
      'x-kubernetes-group-version-kind'
    ];
    if (kinds?.some(({ group, version, kind }) => wanted.has(`${group}/${version}/${kind}`)) === true) {
      queue.push(name);
    }
  }
  const names = new Set<string>();
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (!names.has(name)) {
      names.add(name);
      const references = JSON.stringify(published[name]).matchAll(/"#\/components\/schemas\/([^"]+)"/g);
      queue.push(...Array.from(references, ([, target = '']) => target));
    }
  }
  return Object.fromEntries([...names].sort().map((name) => [name, published[name] ?? null]));
}

/**
 * Facts of Go sources that OpenAPI does not have. `drop`: fields that are omitted when they are empty (`omitempty` without a
 * pointer). `null`: lists, maps and times that are null when they are absent. `types`: named Go types of scalars, lists and
 * maps, which messages about wrong types mention.
 */
type GoFacts = {
  readonly drop: string[];
  readonly null: string[];
  readonly types: Record<string, string>;
};

function goFacts(published: Components): Json {
  const result: Record<string, GoFacts> = {};
  for (const [module, folder, prefix] of PACKAGES) {
    const root = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', module], { cwd: modules }).toString().trim();
    const bodies = new Map<string, string>();
    for (const path of globSync(join(folder, folder === '' ? '*/*/types*.go' : 'types*.go'), { cwd: root })) {
      const [group = '', version = ''] = path.split('/');
      const base = folder === '' ? `${prefix}.${group}.${version}` : prefix;
      const source = readFileSync(join(root, path), 'utf8');
      for (const [, type = '', body = ''] of source.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)) {
        bodies.set(`${base}.${type}`, body);
      }
    }
    for (const name of bodies.keys().filter((name) => published[name] !== undefined)) {
      const found = factsOf(name, bodies);
      if (found.drop.length + found.null.length + Object.keys(found.types).length > 0) {
        result[name] = found;
      }
    }
  }
  return Object.fromEntries(Object.entries(result).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function factsOf(name: string, bodies: ReadonlyMap<string, string>): GoFacts {
  const found: GoFacts = { drop: [], null: [], types: {} };
  const base = name.slice(0, name.lastIndexOf('.'));
  const fields = /^\t(?:\w+[ \t]+)?(\S+)[ \t]+`(?:.*?\s)?json:"([\w$-]*)((?:,\w+)*)"/gm;
  for (const [, type = '', field = '', options = ''] of (bodies.get(name) ?? '').matchAll(fields)) {
    const named = namedType(type.replace(/^\*/, ''), base, bodies);
    if (field !== '' && named !== undefined) {
      found.types[field] = named;
    }
    if (field === '') {
      const inlined = factsOf(`${base}.${type}`, bodies);
      found.drop.push(...inlined.drop);
      found.null.push(...inlined.null);
      Object.assign(found.types, inlined.types);
    } else if (/^(?:metav1\.)?(?:Micro)?Time$/.test(type)) {
      (options.includes('omitzero') ? found.drop : found.null).push(field);
    } else if (options.includes('omitempty') && !type.startsWith('*')) {
      found.drop.push(field);
    } else if (!options.includes('omitempty') && /^(?:\[\]|map\[)/.test(type)) {
      found.null.push(field);
    }
  }
  return found;
}

/** A type as Go prints it: `[]v1.RestartPolicy`. Undefined for structs and unnamed types, which the schema has. */
function namedType(type: string, base: string, bodies: ReadonlyMap<string, string>): string | undefined {
  const [, list = '', qualifier, name = ''] = /^(\[\])?(?:(\w+)\.)?([A-Z]\w*)$/.exec(type) ?? [];
  if (name === '' || (qualifier === undefined && bodies.has(`${base}.${name}`))) {
    return undefined;
  }
  const version = qualifier === undefined ? base.slice(base.lastIndexOf('.') + 1) : 'v1';
  return `${list}${version}.${name}`;
}
