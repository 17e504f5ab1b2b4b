// Looks at pages of a dashboard in Chromium, as a reader does: light and dark, on a desk and
// on a telephone, and without scripts. The address is what spillway dashboard prints; the
// paths follow.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { audit, desk, end, found, launch, open, phone } from './browser.mjs'

const shots = process.env.SITE_SHOTS // a folder for pictures, if they are wanted
const [address, ...paths] = process.argv.slice(2)
const base = new URL(address).origin
const looks = [
  { name: 'desk-light', viewport: desk, theme: 'light', scripts: true },
  { name: 'desk-dark', viewport: desk, theme: 'dark', scripts: true },
  { name: 'telephone', viewport: phone, theme: 'light', scripts: true },
  { name: 'without-scripts', viewport: desk, theme: 'light', scripts: false },
]
const browser = await launch()
for (const look of looks) {
  let at = '/'
  const where = () => `${at} (${look.name})`
  const tab = await open(browser, address, look, where)
  for (at of ['/', ...paths]) {
    await tab.goto(base + at, { waitUntil: 'load' })
    if (shots) {
      mkdirSync(shots, { recursive: true })
      await tab.screenshot({ path: join(shots, `${at.replaceAll(/[^a-z0-9]+/g, '_')}-${look.name}.png`), fullPage: true })
    }
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (wide > 0) found.other.push(`${where()}: ${wide} pixels wider than the screen`)
    const text = await tab.evaluate(() => document.querySelector('main').innerText)
    if (text.length < 20) found.other.push(`${where()}: it says nothing but ${text}`)
    if (look.scripts) await audit(tab, where())
  }
  await tab.browserContext().close()
}
await end(browser, `${paths.length + 1} pages in ${looks.length} looks`)
