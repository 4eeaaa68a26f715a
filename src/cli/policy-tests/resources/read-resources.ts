// The objects that policies are tested with: files, folders and standard input with manifests.
import { resolve } from 'node:path';
import { documentName, readText, STANDARD_INPUT } from '../../document.ts';
import { CliError, EXIT } from '../../errors.ts';
import { type ManifestObject, manifestObjects } from '../../manifest-objects.ts';
import { manifestFiles } from '../../policy/manifests.ts';
import { listed } from '../../../values/index.ts';

/** Most text of all files: about 40,000 objects of 3 KiB, which take a gigabyte when they are parsed. Characters. */
const MAX_CHARACTERS = 128 * 1024 * 1024;
/** More than a large cluster's applications have. Bounds the results, one for each object and policy. */
const MAX_OBJECTS = 50_000;
const MAX_LISTED = 5;

/** A file with manifests. */
export interface ResourceFile {
  /** As users name it. */
  readonly name: string;
  readonly isInput: boolean;
  readonly text: string;
}

/** An object, and where it is. */
export interface Resource extends ManifestObject {
  readonly file: ResourceFile;
}

export interface Resources {
  readonly resources: readonly Resource[];
  /** Documents of folders that are no objects, as `values.yaml:1`. */
  readonly others: readonly string[];
}

/**
 * The objects of files, of standard input for `-`, and of the YAML and JSON files in folders and below. Folders may have
 * other documents beside them, such as the values of a chart.
 * @throws CliError when a file cannot be read, has no objects, or there are too many
 */
export async function readResources(paths: readonly string[]): Promise<Resources> {
  const resources: Resource[] = [];
  const others: string[] = [];
  const seen = new Set<string>();
  let characters = 0;
  for (const path of paths) {
    const files = path === STANDARD_INPUT ? [path] : await manifestFiles(path);
    const isFolder = files.length !== 1 || files[0] !== path;
    for (const one of files.filter((name) => isFirst(name, seen))) {
      const file = { name: documentName(one), isInput: one === STANDARD_INPUT, text: await readText(one) };
      characters += file.text.length;
      const found = manifestObjects(file.text, file.name);
      const odd = found.others.map((line) => `${file.name}:${line}`);
      if (!isFolder) {
        requireObjects(file.name, found.objects.length, odd);
      }
      others.push(...odd);
      resources.push(...found.objects.map((object) => ({ ...object, file })));
      requireBounds(resources.length, characters);
    }
  }
  return { resources, others };
}

/** Whether a file was not read yet. */
function isFirst(path: string, seen: Set<string>): boolean {
  const key = path === STANDARD_INPUT ? path : resolve(path);
  const isNew = !seen.has(key);
  seen.add(key);
  return isNew;
}

function requireObjects(name: string, objects: number, others: readonly string[]): void {
  const hint =
    'Expected manifests with apiVersion and kind. For a chart or a kustomization, give its output: helm template CHART | portcullis test -p POLICY -';
  if (others.length > 0) {
    const where = listed(others, MAX_LISTED);
    throw new CliError(`${where}: not a Kubernetes object`, { exitCode: EXIT.usage, hint });
  }
  if (objects === 0) {
    throw new CliError(`${name} has no objects`, { exitCode: EXIT.usage, hint });
  }
}

function requireBounds(objects: number, characters: number): void {
  if (objects > MAX_OBJECTS) {
    throw new CliError(`expected at most ${MAX_OBJECTS} objects, got more`, { exitCode: EXIT.usage });
  }
  if (characters > MAX_CHARACTERS) {
    throw new CliError(`expected files of at most ${MAX_CHARACTERS} characters together, got more`, {
      exitCode: EXIT.usage,
    });
  }
}
