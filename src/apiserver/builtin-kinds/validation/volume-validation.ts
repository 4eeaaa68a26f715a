import { dnsLabelProblems } from '../../../names/index.ts';
import { checkNoBacksteps } from './container-validation.ts';
import { configKeyProblems } from '../../../resources/kind-validation/index.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

const MAX_MODE = 0o777;

/** Validation of volume sources, in the order of API servers. */
const SOURCES: Readonly<Record<string, (source: CheckedValue) => void>> = {
  emptyDir: (source) => {
    if ((source.at('sizeLimit').quantity?.sign ?? 0) < 0) {
      source.at('sizeLimit').forbidden('SizeLimit field must be a valid resource quantity');
    }
  },
  hostPath: checkHostPath,
  secret: (source) => {
    source.at('secretName').needed();
    checkFiles(source);
  },
  nfs: checkNfs,
  persistentVolumeClaim: (source) => void source.at('claimName').needed(),
  downwardAPI: (source) => checkMode(source.at('defaultMode')),
  configMap: (source) => {
    source.at('name').needed();
    checkFiles(source);
  },
  projected: (source) => {
    checkMode(source.at('defaultMode'));
    for (const projection of source.at('sources').items) {
      checkProjection(projection);
    }
  },
  csi: (source) => void source.at('driver').needed(),
};

/** Validates the volumes of a pod. Returns their names. */
export function checkVolumes(volumes: CheckedValue): ReadonlySet<string> {
  const names = new Set<string>();
  for (const volume of volumes.items) {
    const name = volume.at('name');
    if (name.needed()) {
      name.follows(dnsLabelProblems);
      if (names.has(name.text)) {
        name.duplicate();
      }
      names.add(name.text);
    }
    const given = Object.keys(volume.value ?? {}).filter((field) => field !== 'name');
    const known = Object.keys(SOURCES).filter((field) => given.includes(field));
    const [first, ...others] = [...known, ...given.filter((field) => !known.includes(field))];
    if (first !== undefined) {
      SOURCES[first]?.(volume.at(first));
    }
    others.forEach((other) => volume.at(other).forbidden('may not specify more than 1 volume type'));
  }
  return names;
}

export function checkHostPath(source: CheckedValue): void {
  if (source.at('path').needed()) {
    checkNoBacksteps(source.at('path'));
  }
  source.at('type').oneOf(HOST_PATH_TYPES);
}

export function checkNfs(source: CheckedValue): void {
  source.at('server').needed();
  if (source.at('path').needed() && !source.at('path').text.startsWith('/')) {
    source.at('path').invalid('must be an absolute path');
  }
}

function checkFiles(source: CheckedValue): void {
  checkMode(source.at('defaultMode'));
  source.at('items').items.forEach(checkKeyToPath);
}

function checkKeyToPath(item: CheckedValue): void {
  if (item.at('key').needed()) {
    item.at('key').follows(configKeyProblems);
  }
  const path = item.at('path');
  if (path.needed()) {
    if (path.text.startsWith('/')) {
      path.invalid('must be a relative path');
    }
    checkNoBacksteps(path);
  }
  checkMode(item.at('mode'));
}

function checkMode(mode: CheckedValue): void {
  if (mode.number !== undefined && (mode.number < 0 || mode.number > MAX_MODE)) {
    mode.invalid('must be a number between 0 and 0777 (octal), both inclusive');
  }
}

function checkProjection(projection: CheckedValue): void {
  for (const name of ['secret', 'configMap']) {
    const source = projection.at(name);
    if (source.isSet) {
      source.at('name').needed();
      source.at('items').items.forEach(checkKeyToPath);
    }
  }
  const token = projection.at('serviceAccountToken');
  if (token.isSet) {
    token.at('path').needed();
    const seconds = token.at('expirationSeconds');
    if (seconds.number !== undefined && seconds.number < 600) {
      seconds.invalid('may not specify a duration less than 10 minutes');
    }
  }
}
