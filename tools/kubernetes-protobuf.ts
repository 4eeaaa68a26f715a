// Writes src/apiserver/gateway/protobuf/messages.json.br: the numbers and types of the fields of Kubernetes' kinds in their
// protobuf form, which kubectl sends. Read from the .proto files of the release that the end-to-end tests pin. Needs Go.
// `--check` writes nothing, and fails when the file is stale.
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { isJsonObject, kubernetesOpenApi } from '../src/resources/index.ts';

const file = fileURLToPath(new URL('../src/apiserver/gateway/protobuf/messages.json.br', import.meta.url));
const modules = fileURLToPath(new URL('../test/cluster/apiserver', import.meta.url));

interface Field {
  readonly number: number;
  readonly name: string;
  readonly type: string;
  readonly label: 'one' | 'many' | 'map';
}

if (process.argv.includes('--check') && spawnSync('go', ['version']).status !== 0) {
  console.log('messages.json.br is not checked: there is no Go here');
  process.exit(0);
}

const SCALARS = new Set(['string', 'bool', 'bytes', 'double', 'float', 'int32', 'int64', 'uint32', 'uint64']);
const messages = readMessages();
const components = kubernetesOpenApi();
const wanted = new Set<string>();
const waiting = Object.keys(components).filter((name) => messages.has(name));
for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
  if (!wanted.has(name)) {
    wanted.add(name);
    waiting.push(...(messages.get(name) ?? []).map(({ type }) => type).filter((type) => messages.has(type)));
  }
}
const names = [...wanted].toSorted();
const text = JSON.stringify(
  Object.fromEntries(names.map((name) => [name, (messages.get(name) ?? []).map((field) => row(name, field))])),
);

if (process.argv.includes('--check')) {
  if (brotliDecompressSync(readFileSync(file)).toString() !== text) {
    console.error(
      'messages.json.br is not what the .proto files say: run `node tools/run.mjs tools/kubernetes-protobuf.ts`',
    );
    process.exitCode = 1;
  }
} else {
  const data = brotliCompressSync(text);
  writeFileSync(file, data);
  console.log(`${names.length} messages: ${text.length} bytes, ${data.length} compressed`);
}

/** `[number, name in JSON, type, label]`; the name is empty where JSON has the fields of the message in its parent. */
function row(message: string, { number, name, type, label }: Field): readonly (number | string)[] {
  const properties = components[message]?.['properties'];
  const lower = `${name.slice(0, 1).toLowerCase()}${name.slice(1)}`;
  const isKnown = !isJsonObject(properties) || Object.hasOwn(properties, name);
  const inJson = isKnown ? name : Object.hasOwn(properties, lower) ? lower : messages.has(type) ? '' : name;
  return [number, inJson, type, ...(label === 'one' ? [] : [label])];
}

function readMessages(): Map<string, readonly Field[]> {
  const all = new Map<string, readonly Field[]>();
  for (const module of ['k8s.io/api', 'k8s.io/apimachinery', 'k8s.io/apiextensions-apiserver']) {
    const folder = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', module], {
      cwd: modules,
      encoding: 'utf8',
    }).trim();
    for (const path of globSync('**/generated.proto', { cwd: folder })) {
      for (const [name, fields] of messagesOf(readFileSync(join(folder, path), 'utf8'))) {
        all.set(name, fields);
      }
    }
  }
  return all;
}

function messagesOf(source: string): [string, Field[]][] {
  const plain = source.replaceAll(/\/\/.*$/gm, '');
  const prefix = componentPrefix(/^package ([\w.]+);/m.exec(plain)?.[1] ?? '');
  return [...plain.matchAll(/^message (\w+) \{(.*?)^\}/gms)].map(([, name = '', body = '']) => [
    `${prefix}.${name}`,
    [...body.matchAll(/^\s*(?:(optional|repeated) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);/gm)].map(
      ([, label, plainType, valueType, field = '', number = '']): Field => ({
        number: Number(number),
        name: field,
        type: typeName(plainType ?? valueType ?? '', prefix),
        label: valueType !== undefined ? 'map' : label === 'repeated' ? 'many' : 'one',
      }),
    ),
  ]);
}

function typeName(type: string, prefix: string): string {
  if (SCALARS.has(type)) {
    return type;
  }
  const relative = type.replace(/^\./, '');
  const dot = relative.lastIndexOf('.');
  return dot === -1 ? `${prefix}.${relative}` : `${componentPrefix(relative.slice(0, dot))}.${relative.slice(dot + 1)}`;
}

/** The name of a package in published schemas: `io.k8s.api.core.v1` for `k8s.io.api.core.v1`. */
function componentPrefix(packageName: string): string {
  return packageName.replace(/^k8s\.io\./, 'io.k8s.');
}
