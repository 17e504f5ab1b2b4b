// Copies the pages of ../docs into pages/, from which the site is built: they are written
// once, for the repository. A link out of docs becomes one to the repository, and text that
// looks like a template of Vue stays text.
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const root = resolve(here, '..')
const docs = join(root, 'docs')
const pages = join(here, 'pages')
const repository = 'https://github.com/spillway-dev/spillway/blob/main/'

// Man pages are for man; the list of pages is what the sidebar is for.
const leftOut = (path) => path.startsWith(join(docs, 'man')) || path === join(docs, 'README.md')

rmSync(pages, { recursive: true, force: true })
mkdirSync(pages)
copy(docs)
cpSync(join(here, 'index.md'), join(pages, 'index.md'))
cpSync(join(here, 'public'), join(pages, 'public'), { recursive: true })
for (const files of ['pictures', 'schemas']) cpSync(join(docs, files), join(pages, 'public', files), { recursive: true })
writeFileSync(join(pages, 'adr', 'index.md'), decisions())

function copy(dir) {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name)
    const to = join(pages, relative(docs, path))
    if (leftOut(path)) continue
    if (entry.isDirectory()) {
      mkdirSync(to, { recursive: true })
      copy(path)
    } else if (path.endsWith('.md')) {
      writeFileSync(to, page(path))
    } else {
      cpSync(path, to)
    }
  }
}

// page is a page with its links as the site needs them.
function page(path) {
  let fenced = false
  return readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => {
      if (/^ *```/.test(line)) fenced = !fenced
      return fenced || line.startsWith('    ') ? line : prose(line, path)
    })
    .join('\n')
}

function prose(line, path) {
  return line
    .replaceAll('{{', '&#123;&#123;')
    .replace(/\]\(([^()\s]+)\)/g, (whole, target) => `](${linked(target, path)})`)
}

function linked(target, from) {
  if (/^(https?:|#)/.test(target)) return target
  const [file, fragment] = target.split('#')
  const path = resolve(dirname(from), file)
  const inside = path.startsWith(docs + '/') && !leftOut(path)
  if (!inside) return repository + relative(root, path) + (fragment ? '#' + fragment : '')
  if (statSync(path).isDirectory()) return relative(dirname(from), path) + '/'
  return target.startsWith('.') ? target : './' + target
}

// decisions is the list of the architecture decisions, by their headings.
function decisions() {
  const rows = readdirSync(join(docs, 'adr'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `- [${readFileSync(join(docs, 'adr', name), 'utf8').match(/^# (.*)$/m)[1]}](./${name})`)
  return `# Architecture decisions\n\nRead why something is as it is.\nStart with [one engine](./0001-one-engine.md).\n\n${rows.join('\n')}\n`
}
