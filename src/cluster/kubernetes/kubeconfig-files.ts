// The files of a kubeconfig, merged.
import { delimiter, join } from 'node:path';
import { fileProblem, readWholeFile } from '../../files/index.ts';
import { textPosition } from '../../values/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { isJsonObject } from '../../resources/index.ts';
import { ClusterError } from '../errors.ts';
import { ConfigSection } from './config-section.ts';

/** Merged files: the first entry of a name, and the first current context, win. */
export interface Kubeconfig {
  readonly files: readonly string[];
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, ConfigSection>;
  readonly contexts: ReadonlyMap<string, ConfigSection>;
  readonly users: ReadonlyMap<string, ConfigSection>;
}

/** The files to read: the given ones, those in `KUBECONFIG`, or the default. */
export function kubeconfigPaths(
  named: readonly string[] | undefined,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  if (named !== undefined) {
    return named;
  }
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (listed.length > 0) {
    return listed;
  }
  const home = env['HOME'] ?? env['USERPROFILE'];
  return home === undefined || home === '' ? [] : [join(home, '.kube', 'config')];
}

/**
 * Reads and merges files.
 * @param allNeeded whether every file must exist; otherwise one is enough.
 */
export async function readKubeconfigs(paths: readonly string[], allNeeded: boolean): Promise<Kubeconfig> {
  const files: ConfigSection[] = [];
  for (const path of paths) {
    const text = await textOf(path, allNeeded);
    if (text !== undefined) {
      files.push(parse(path, text));
    }
  }
  if (files.length === 0) {
    const looked = paths.length === 0 ? 'neither KUBECONFIG nor HOME is set' : `looked for ${paths.join(', ')}`;
    throw new ClusterError(
      'kubeconfig-missing',
      `expected a kubeconfig, got none (${looked}); name one, set KUBECONFIG, or start a cluster of your own with npm start`,
    );
  }
  return {
    files: files.map(({ file }) => file),
    currentContext: files.map((file) => file.text('current-context')).find((name) => name !== undefined),
    clusters: merged(files, 'clusters', 'cluster'),
    contexts: merged(files, 'contexts', 'context'),
    users: merged(files, 'users', 'user'),
  };
}

async function textOf(path: string, isNeeded: boolean): Promise<string | undefined> {
  try {
    return (await readWholeFile(path)).toString('utf8');
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (isMissing && !isNeeded) {
      return undefined;
    }
    const message = `kubeconfig ${path}: expected a file that can be read, got none (${fileProblem(error)}); correct its path`;
    throw new ClusterError(isMissing ? 'kubeconfig-missing' : 'kubeconfig-invalid', message, { cause: error });
  }
}

function parse(file: string, text: string): ConfigSection {
  // kubectl treats an empty file as an empty configuration.
  const [document, ...others] = documentsOf(file, text);
  if (others.length > 0 || !isJsonObject(document ?? {})) {
    throw new ClusterError(
      'kubeconfig-invalid',
      `kubeconfig ${file}: expected a mapping with clusters, contexts and users, got something else; is this the right file?`,
    );
  }
  const section = new ConfigSection(file, '', (document ?? {}) as Record<string, never>);
  const kind = section.text('kind');
  const version = section.text('apiVersion');
  if (kind !== undefined && kind !== 'Config') {
    throw section.wrong('kind', `Config, got ${JSON.stringify(kind)}`, 'is this the right file?');
  }
  if (version !== undefined && version !== 'v1') {
    throw section.wrong('apiVersion', `v1, got ${JSON.stringify(version)}`, 'no other version is known');
  }
  return section;
}

function documentsOf(file: string, text: string): unknown[] {
  try {
    return parseYaml(text, 'core');
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) {
      throw error;
    }
    const { line, column } = textPosition(text, error.offset);
    const message = `kubeconfig ${file}: line ${line}, column ${column}: expected YAML, got an error: ${error.message}; correct that line`;
    throw new ClusterError('kubeconfig-invalid', message, { cause: error });
  }
}

function merged(files: readonly ConfigSection[], list: string, key: string): Map<string, ConfigSection> {
  const entries = new Map<string, ConfigSection>();
  for (const file of files) {
    for (const entry of file.list(list)) {
      const name = entry.requiredText('name', 'each entry has a name');
      if (!entries.has(name)) {
        const section = entry.section(key);
        entries.set(name, section ?? new ConfigSection(file.file, `${entry.path}.${key}`, {}));
      }
    }
  }
  return entries;
}
