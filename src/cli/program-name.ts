/** Set by `bin/kubectl-portcullis.mjs`. */
const PLUGIN_NAME = 'kubectl portcullis';

/** How the user typed the name of this program, for commands to copy: npx and the kubectl plugin set variables. */
export function programName(): string {
  if (process.env['PORTCULLIS_PROGRAM'] === PLUGIN_NAME) {
    return PLUGIN_NAME;
  }
  return process.env['npm_lifecycle_event'] === 'npx' ? 'npx portcullis' : 'portcullis';
}

/** A text whose commands are those of the kubectl plugin, if the user runs that. Paths and names of objects stay. */
export function asTyped(text: string): string {
  return programName() === PLUGIN_NAME
    ? text.replaceAll(/(?<![\w./@'-])portcullis(?= [a-zA-Z[-])/g, PLUGIN_NAME)
    : text;
}
