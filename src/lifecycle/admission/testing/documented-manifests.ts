import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isJsonObject, type JsonObject } from '../../../values/index.ts';
import { parseYaml } from '../../../values/yaml/index.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

/** A manifest, and the file that it stands in, from the root of the repository. */
export interface DocumentedManifest {
  readonly file: string;
  readonly manifest: JsonObject;
}

/** The manifests in YAML files, and in the YAML blocks of Markdown files. @param patterns globs, from the root */
export function documentedManifests(patterns: readonly string[]): readonly DocumentedManifest[] {
  return globSync(patterns, { cwd: root }).flatMap((path) => {
    const file = path.replaceAll('\\', '/');
    return manifestsIn(file).map((manifest) => ({ file, manifest }));
  });
}

function manifestsIn(file: string): readonly JsonObject[] {
  const text = readFileSync(`${root}/${file}`, 'utf8');
  const blocks = file.endsWith('.md')
    ? [...text.matchAll(/^```ya?ml\n(.*?)^```/gms)].map(([, block = '']) => block)
    : [text];
  return blocks.flatMap((block) => documentsOf(block).filter(isJsonObject));
}

/** Snippets may be no whole documents. */
function documentsOf(text: string): readonly unknown[] {
  try {
    return parseYaml(text);
  } catch {
    return [];
  }
}
