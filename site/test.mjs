// Looks at every page of the built site in Chromium, as a reader does: light and dark, on a
// desk and on a telephone. A page fails by an error of its scripts, a request that fails, an
// anchor that leads nowhere, a violation that axe finds, or a line that is wider than the
// telephone. The search must find something.
import { createServer } from 'node:http'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import puppeteer from 'puppeteer-core'
import { chromium } from './chromium.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const site = resolve(here, process.env.SITE_OUT || '../dist/site')
const axe = readFileSync(join(here, 'node_modules/axe-core/axe.min.js'), 'utf8')
const shots = process.env.SITE_SHOTS // a folder for pictures, if they are wanted
const only = new RegExp(process.env.SITE_PAGES || '') // which pages to look at, to try something
const problems = []

// looks are how readers look at a page. Decisions are all of one form: axe looks at the first.
const isLater = (page) => page.startsWith('/adr/') && !page.startsWith('/adr/0001')
const desk = { width: 1280, height: 900 }
const phone = { width: 390, height: 844, isMobile: true, hasTouch: true }
const looks = [
  { name: 'desk, light', viewport: desk, theme: 'light', of: () => true },
  { name: 'desk, dark', viewport: desk, theme: 'dark', of: (page) => !isLater(page) },
  { name: 'telephone, light', viewport: phone, theme: 'light', of: (page) => !isLater(page) },
]

const server = await serve()
const base = `http://127.0.0.1:${server.address().port}`
const browser = await puppeteer.launch({ executablePath: chromium(), args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] })
try {
  const pages = listed(site).filter((page) => only.test(page))
  const anchors = new Map()
  const links = []
  for (const look of looks) await withTab(look, (tab) => lookAt(tab, look, pages.filter(look.of), anchors, links))
  for (const { from, page, fragment } of links) {
    if (anchors.has(page) && !anchors.get(page).has(fragment)) report(`${from}: link to ${page}#${fragment}: no such anchor`)
  }
  await withTab(looks[0], search)
  console.log(`${pages.length} pages, ${links.length} links to anchors`)
  const looked = looks.flatMap((look) => pages.filter(look.of).map((page) => `${page} (${look.name})`))
  const bad = looked.filter((look) => problems.some((problem) => problem.startsWith(look)))
  console.log(`${looked.length - bad.length} passed, ${bad.length} failed`)
} finally {
  await browser.close()
  server.close()
}
process.exitCode = problems.length > 0 ? 1 : 0

function report(problem) {
  problems.push(problem)
  console.error(problem)
}

async function withTab(look, act) {
  const context = await browser.createBrowserContext()
  const tab = await context.newPage()
  await tab.setViewport(look.viewport)
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: look.theme }, { name: 'prefers-reduced-motion', value: 'reduce' }])
  await act(tab)
  await context.close()
}

async function lookAt(tab, look, pages, anchors, links) {
  let at = ''
  const complain = (text) => report(`${at} (${look.name}): ${text}`)
  tab.on('pageerror', (error) => complain(`script: ${error.message}`))
  tab.on('console', (message) => ['error', 'warn'].includes(message.type()) && complain(`console: ${message.text()}`))
  tab.on('requestfailed', (request) => complain(`request: ${request.url()}`))
  for (at of pages) {
    await tab.goto(base + at, { waitUntil: 'load' })
    await tab.waitForFunction(() => document.querySelector('#app').__vue_app__) // it is alive
    if (shots) await picture(tab, at, look)
    if (look === looks[0]) await collect(tab, at, anchors, links)
    if (look.viewport === phone) {
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      if (wide > 0) complain(`${wide} pixels wider than the screen`)
    }
    if (isLater(at)) continue
    await tab.evaluate(axe)
    const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
    for (const v of violations) complain(`axe: ${v.id}: ${v.help} (${v.nodes.length}: ${v.nodes[0].target.join(' ')})`)
  }
}

// collect notes the anchors of a page, and its links to anchors of the site.
async function collect(tab, page, anchors, links) {
  const found = await tab.evaluate(() => ({
    ids: [...document.querySelectorAll('[id]')].map((e) => e.id),
    links: [...document.querySelectorAll('.vp-doc a[href*="#"]')].map((a) => new URL(a.href)).filter((u) => u.origin === location.origin).map((u) => [u.pathname, decodeURIComponent(u.hash.slice(1))]),
  }))
  anchors.set(page, new Set(found.ids))
  for (const [to, fragment] of found.links) if (fragment) links.push({ from: page, page: to.replace(/\.html$/, ''), fragment })
}

async function search(tab) {
  await tab.goto(base + '/', { waitUntil: 'networkidle0' })
  await tab.click('.VPNavBarSearch button')
  await tab.waitForSelector('#localsearch-input')
  await tab.type('#localsearch-input', 'maxUnavailable')
  await tab.waitForSelector('.VPLocalSearchBox .result', { timeout: 20000 }).catch(() => report('/: the search finds nothing'))
}

async function picture(tab, page, look) {
  mkdirSync(shots, { recursive: true })
  const name = `${page.replaceAll('/', '_')}-${look.name.replaceAll(/[, ]+/g, '-')}.png`
  await tab.screenshot({ path: join(shots, name) })
}

// listed are the paths of all pages.
function listed(dir, prefix = '/') {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return ['assets', 'drawings'].includes(entry.name) ? [] : listed(join(dir, entry.name), prefix + entry.name + '/')
    if (!entry.name.endsWith('.html') || entry.name === '404.html') return []
    return [prefix + entry.name.replace(/(index)?\.html$/, '')]
  })
}

function serve() {
  const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json', '.woff2': 'font/woff2' }
  const server = createServer((request, response) => {
    const path = join(site, decodeURIComponent(new URL(request.url, 'http://site').pathname))
    const file = [path, path + '.html', join(path, 'index.html')].find((f) => existsSync(f) && statSync(f).isFile())
    response.writeHead(file ? 200 : 404, { 'content-type': types[extname(file ?? '.html')] ?? 'application/octet-stream' })
    response.end(file ? readFileSync(file) : '')
  })
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)))
}
