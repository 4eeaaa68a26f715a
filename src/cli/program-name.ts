/** How the user typed the name of this program, for commands to copy: npx sets the variable. */
export function programName(): string {
  return process.env['npm_lifecycle_event'] === 'npx' ? 'npx portcullis' : 'portcullis';
}
