/** A name without the dot that says that it is no variable of a macro. */
export function rootedName(name: string): string {
  return name.startsWith('.') ? name.slice(1) : name;
}
